"""The form of a tool that is one HTTP request."""

import re
from typing import Any, ClassVar, get_args

from django import forms
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from tools.credentials import binding_matches, format_origin
from tools.forms.fields import JsonField, PairsField
from tools.forms.json_body import FlatJsonField, JsonEditor, is_flat_object
from tools.forms.multipart import MultipartField
from tools.forms.schema import SchemaField, offer_arguments
from tools.forms.tool import ToolForm
from tools.kinds.config_checks import describe_unknown_argument
from tools.kinds.http_config import HttpConfig, Method
from tools.models import Credential
from tools.net.netpolicy import AddressRefused
from tools.net.outbound_policy import get_net_policy
from tools.text.validation_message import strip_value_error
from tools.typed_generics import StrOrPromise

METHOD_EFFECTS = {
    "GET": "read",
    "HEAD": "read",
    "PUT": "idempotent",
    "DELETE": "idempotent",
}
"""Other methods have side effects."""

NAME_PATTERN = re.compile(r"[^\s,]+")

BODY_CHOICES = [
    ("arguments", _("Remaining arguments as JSON")),
    ("fields", _("JSON fields with placeholders")),
    ("json", _("Nested JSON with placeholders")),
    ("form", _("Form with placeholders")),
    ("multipart", _("Multipart form with files")),
]
FORM_FIELDS = {
    "body": "json_body",
    "json": "json_body",
    "form": "form_body",
    "multipart": "multipart_body",
}


class HttpToolForm(ToolForm):
    """A request with placeholders for the arguments."""

    kind: ClassVar[str] = "http"
    kind_label: ClassVar[StrOrPromise] = _("HTTP request")
    kind_section_title: ClassVar[StrOrPromise] = _("Request")
    kind_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        *(("method", "url"), "args_schema", "credential", ("headers", "query")),
        *(("joined", "styles"), "body_kind", "json_fields", "json_body", "form_body"),
        "multipart_body",
        ("pick", "max_bytes"),
    )
    rare_fields: ClassVar[tuple[str, ...]] = ("joined", "styles", "pick", "max_bytes")

    method = forms.ChoiceField(
        label=_("Method"), choices=[(m, m) for m in get_args(Method)]
    )
    url = forms.CharField(
        label=_("URL"),
        max_length=2000,
        widget=forms.TextInput(attrs={"class": "vURLField mono"}),
        help_text=_(
            "For example, https://api.example.com/orders/{order_id}. Arguments "
            "without a placeholder are sent in the query or in the body."
        ),
    )
    headers = PairsField(
        label=_("Headers"),
        required=False,
        separator=":",
        help_text=_("One per line, for example Accept-Language: en"),
    )
    query = PairsField(
        label=_("Query parameters"),
        required=False,
        separator="=",
        help_text=_("One per line, for example expand={expand}"),
    )
    joined = forms.CharField(
        label=_("Comma-separated list parameters"),
        required=False,
        max_length=1000,
        help_text=_(
            "Names of query parameters and form fields whose lists are sent as a,b "
            "instead of one per value."
        ),
    )
    styles = PairsField(
        label=_("Parameter styles"),
        required=False,
        separator="=",
        help_text=_(
            "One per line, for example filter=deepObject. Styles: spaceDelimited "
            "(a b), pipeDelimited (a|b), deepObject (filter[key]=value), json."
        ),
    )
    body_kind = forms.ChoiceField(label=_("Body"), choices=BODY_CHOICES, required=False)
    json_fields = FlatJsonField(
        label=_("JSON fields"),
        required=False,
        help_text=_(
            "One per line, for example question: {question}. Numbers, true and null "
            'keep their type; "5" in quotes is text.'
        ),
    )
    json_body = JsonField(
        label=_("JSON body"),
        required=False,
        widget=JsonEditor,
        help_text=_('For example, {"query": {"text": "{question}"}, "limit": 5}.'),
    )
    form_body = PairsField(
        label=_("Form body"),
        required=False,
        separator="=",
        help_text=_("One field per line, for example name={name}"),
    )
    multipart_body = MultipartField(
        label=_("Multipart body"),
        required=False,
        help_text=_(
            "One field or file per line, for example note={note} or "
            "photo=@{photo};encoding=base64;filename={name};type=image/png. Without "
            "encoding, the argument is the text of the file."
        ),
    )
    pick = forms.CharField(
        label=_("Response field (JSON pointer)"),
        required=False,
        max_length=300,
        help_text=_("For example, /items/0. Leave empty to return the whole response."),
    )
    max_bytes = forms.IntegerField(
        label=_("Maximum response size (bytes)"),
        min_value=1,
        max_value=20 << 20,
        required=False,
        help_text=_("Leave empty for 1 MB."),
    )
    args_schema = SchemaField(
        label=_("Arguments"),
        required=False,
        help_text=_(
            "Without arguments the tool takes a single text input, the placeholder "
            "{input}."
        ),
    )

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "args_schema", "credential")
        help_texts = {
            **ToolForm.Meta.help_texts,
            "credential": _(
                "Added to each request to the hosts it is bound to. Never shown."
            ),
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        stored = self.instance.config
        for name, value in {
            **stored,
            "joined": " ".join(stored.get("joined", ())),
            "body_kind": get_body_kind(stored),
            "json_fields": stored["json"]
            if is_flat_object(stored.get("json"))
            else None,
            "json_body": stored.get("json"),
            "form_body": stored.get("form"),
            "multipart_body": stored.get("multipart"),
        }.items():
            if name in self.fields and name != "credential":
                self.fields[name].initial = value
        if self.instance.pk is None and "effect" in self.fields:
            self.fields["effect"].required = False
            self.fields["effect"].initial = None
            self.fields["effect"].help_text = _(
                "What a call can change. After a crash, read-only and idempotent calls "
                "are repeated; a person decides about others. Leave empty to derive it "
                "from the method."
            )
        if "credential" in self.fields:
            self.fields["credential"].required = False

    def clean(self) -> dict[str, Any] | None:
        """Check the whole request, and its placeholders against the schema."""
        cleaned = super().clean() or {}
        if not cleaned.get("effect") and cleaned.get("method"):
            cleaned["effect"] = METHOD_EFFECTS.get(cleaned["method"], "side_effect")
        if self.errors:
            return cleaned
        try:
            config = HttpConfig.model_validate(self.instance.config)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_context=False):
                place = str(one["loc"][0]) if one["loc"] else "body_kind"
                sentence = strip_value_error(one["msg"])
                field = FORM_FIELDS.get(place, place)
                self.add_error(field, f"{sentence[0].upper()}{sentence[1:]}.")
            return cleaned
        try:
            get_net_policy("tool").check_url(config.url)
        except AddressRefused as refused:
            self.add_error("url", str(refused))
        self.check_placeholders(config, cleaned)
        self.check_styled_names(config)
        self.check_credential(config, cleaned)
        return cleaned

    def check_placeholders(self, config: HttpConfig, cleaned: dict[str, Any]) -> None:
        """Refuse placeholders without an argument."""
        schema = cleaned.get("args_schema")
        known = {"input"} if schema is None else set(schema.get("properties", {}))
        missing = sorted(config.placeholders - known)
        wanted = sorted(config.placeholders) if schema is None else missing
        for name in missing:
            sentence = describe_unknown_argument(f"{{{name}}}", known)
            self.add_error(
                "url" if f"{{{name}}}" in config.url else "args_schema",
                offer_arguments(sentence, wanted if name == missing[0] else []),
            )

    def check_styled_names(self, config: HttpConfig) -> None:
        """Refuse names that are not query parameters or form fields."""
        known = {*config.query, *(config.form or config.multipart or ())}
        for field, names in (("joined", config.joined), ("styles", config.styles)):
            for name in names:
                if name not in known:
                    self.add_error(
                        field,
                        _("“%(name)s” is not a query parameter or form field.")
                        % {"name": name},
                    )

    def check_credential(self, config: HttpConfig, cleaned: dict[str, Any]) -> None:
        """Refuse a credential that is not bound to the host."""
        credential: Credential | None = cleaned.get("credential")
        bindings = credential.hosts if credential else []
        if credential and not any(binding_matches(one, config.url) for one in bindings):
            self.add_error(
                "credential",
                _(
                    "The credential is bound to %(hosts)s, not to %(host)s. Select "
                    "another credential, or add the host to it."
                )
                % {"hosts": ", ".join(bindings), "host": format_origin(config.url)},
            )

    def config(self) -> dict[str, Any]:
        """Return the request without empty parts."""
        cleaned = self.cleaned_data
        config: dict[str, Any] = {"method": cleaned["method"], "url": cleaned["url"]}
        for name in ("headers", "query", "styles", "pick", "max_bytes"):
            if cleaned.get(name):
                config[name] = cleaned[name]
        if joined := NAME_PATTERN.findall(cleaned.get("joined", "")):
            config["joined"] = joined
        if cleaned.get("body_kind") == "json":
            config["json"] = cleaned.get("json_body") or {}
        elif cleaned.get("body_kind") == "fields":
            config["json"] = cleaned.get("json_fields") or {}
        elif cleaned.get("body_kind") == "form":
            config["form"] = cleaned.get("form_body") or {}
        elif cleaned.get("body_kind") == "multipart":
            config["multipart"] = cleaned.get("multipart_body") or {}
        return config


def get_body_kind(stored: dict[str, Any]) -> str:
    """Return the simplest editor that can show a stored body."""
    for kind in ("form", "multipart"):
        if kind in stored:
            return kind
    if "json" not in stored:
        return "arguments"
    return "fields" if is_flat_object(stored["json"]) else "json"
