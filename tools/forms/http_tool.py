"""The form of a tool that is one HTTP request."""

import re
from typing import Any, ClassVar, get_args

from django import forms
from pydantic import ValidationError

from tools.credentials import covers
from tools.forms.fields import JsonField, PairsField
from tools.forms.json_body import FlatJsonField, JsonEditor, is_flat
from tools.forms.schema import SchemaField
from tools.forms.tool import ToolForm
from tools.kinds.config_flaws import no_argument
from tools.kinds.http_config import HttpConfig, Method
from tools.models import Credential
from tools.netpolicy import AddressRefused
from tools.outbound import policy_of

EFFECTS = {"GET": "read", "HEAD": "read", "PUT": "idempotent", "DELETE": "idempotent"}
"""What a method promises; all others have side effects."""

NAMES = re.compile(r"[^\s,]+")

BODIES = [
    ("arguments", "The arguments left over, as JSON"),
    ("fields", "JSON fields with placeholders"),
    ("json", "Nested JSON with placeholders"),
    ("form", "A form with placeholders"),
]
FORM_FIELDS = {"body": "json_body", "json": "json_body", "form": "form_body"}


class HttpToolForm(ToolForm):
    """An address with placeholders, and what is sent there."""

    kind: ClassVar[str] = "http"
    word: ClassVar[str] = "HTTP request"
    own_title: ClassVar[str] = "Request"
    own_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        *(("method", "url"), "args_schema", "credential", ("headers", "query")),
        *("joined", "body_kind", "json_fields", "json_body", "form_body"),
        ("pick", "max_bytes"),
    )

    method = forms.ChoiceField(choices=[(m, m) for m in get_args(Method)])
    url = forms.CharField(
        label="Address",
        max_length=2000,
        widget=forms.TextInput(attrs={"class": "vURLField mono"}),
        help_text="Such as https://api.example.com/orders/{order_id}. Arguments "
        "without a placeholder go into the query, or into the body.",
    )
    headers = PairsField(
        required=False, separator=":", help_text="One a line: Accept-Language: en"
    )
    query = PairsField(
        required=False, separator="=", help_text="One a line: expand={expand}"
    )
    joined = forms.CharField(
        label="Lists with commas",
        required=False,
        max_length=1000,
        help_text="Names from the query whose lists are sent as a,b instead of twice.",
    )
    body_kind = forms.ChoiceField(label="Body", choices=BODIES, required=False)
    json_fields = FlatJsonField(
        label="JSON fields",
        required=False,
        help_text="One a line: question: {question}. Numbers, true and null are sent "
        'as such; "5" in quotes is a text.',
    )
    json_body = JsonField(
        label="JSON body",
        required=False,
        widget=JsonEditor,
        help_text='Such as {"query": {"text": "{question}"}, "limit": 5}.',
    )
    form_body = PairsField(
        label="Form body", required=False, separator="=", help_text="One field a line."
    )
    pick = forms.CharField(
        label="Part of the answer",
        required=False,
        max_length=300,
        help_text="A JSON pointer such as /items/0; empty for the whole answer.",
    )
    max_bytes = forms.IntegerField(
        label="Largest answer (bytes)",
        min_value=1,
        max_value=20 << 20,
        required=False,
        help_text="Empty for 1 MB.",
    )
    args_schema = SchemaField(
        label="Arguments",
        required=False,
        help_text="Without arguments it takes one text, the placeholder {input}.",
    )

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "args_schema", "credential")
        help_texts = {
            **ToolForm.Meta.help_texts,
            "credential": "Filled in at the call, for the hosts it is bound to. "
            "Never shown.",
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        stored = self.instance.config
        for name, value in {
            **stored,
            "joined": " ".join(stored.get("joined", ())),
            "body_kind": body_kind_of(stored),
            "json_fields": stored["json"] if is_flat(stored.get("json")) else None,
            "json_body": stored.get("json"),
            "form_body": stored.get("form"),
        }.items():
            if name in self.fields and name != "credential":
                self.fields[name].initial = value
        if self.instance.pk is None and "effect" in self.fields:
            self.fields["effect"].required = False
            self.fields["effect"].initial = None
            told = self.fields["effect"].help_text
            self.fields["effect"].help_text = f"{told} Empty: as the method promises."
        if "credential" in self.fields:
            self.fields["credential"].required = False

    def clean(self) -> dict[str, Any] | None:
        """Check the request as a whole, and its placeholders against the schema."""
        cleaned = super().clean() or {}
        if not cleaned.get("effect") and cleaned.get("method"):
            cleaned["effect"] = EFFECTS.get(cleaned["method"], "side_effect")
        if self.errors:
            return cleaned
        try:
            config = HttpConfig.model_validate(self.instance.config)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_context=False):
                place = str(one["loc"][0]) if one["loc"] else "body_kind"
                sentence = one["msg"].removeprefix("Value error, ")
                field = FORM_FIELDS.get(place, place)
                self.add_error(field, f"{sentence[0].upper()}{sentence[1:]}.")
            return cleaned
        try:
            policy_of("tool").check_url(config.url)
        except AddressRefused as refused:
            self.add_error("url", str(refused))
        self.check_placeholders(config, cleaned)
        self.check_joined(config)
        self.check_credential(config, cleaned)
        return cleaned

    def check_placeholders(self, config: HttpConfig, cleaned: dict[str, Any]) -> None:
        """Refuse placeholders that no argument fills."""
        schema = cleaned.get("args_schema")
        known = {"input"} if schema is None else set(schema.get("properties", {}))
        for name in sorted(config.placeholders - known):
            self.add_error(
                "url" if f"{{{name}}}" in config.url else "args_schema",
                no_argument(f"{{{name}}}", known),
            )

    def check_joined(self, config: HttpConfig) -> None:
        """Refuse names that the query does not have."""
        for name in config.joined:
            if name not in config.query:
                self.add_error("joined", f"{name!r} is no name in the query above.")

    def check_credential(self, config: HttpConfig, cleaned: dict[str, Any]) -> None:
        """Refuse a credential that is not bound to the host."""
        credential: Credential | None = cleaned.get("credential")
        host = config.url.split("/")[2].rpartition("@")[2].partition(":")[0].lower()
        if credential and not any(covers(one, host) for one in credential.hosts):
            self.add_error(
                "credential",
                f"This credential is bound to {', '.join(credential.hosts)}, "
                f"and not to {host}.",
            )

    def config(self) -> dict[str, Any]:
        """Return the request; what is empty is left out."""
        cleaned = self.cleaned_data
        config: dict[str, Any] = {"method": cleaned["method"], "url": cleaned["url"]}
        for name in ("headers", "query", "pick", "max_bytes"):
            if cleaned.get(name):
                config[name] = cleaned[name]
        if joined := NAMES.findall(cleaned.get("joined", "")):
            config["joined"] = joined
        if cleaned.get("body_kind") == "json":
            config["json"] = cleaned.get("json_body") or {}
        elif cleaned.get("body_kind") == "fields":
            config["json"] = cleaned.get("json_fields") or {}
        elif cleaned.get("body_kind") == "form":
            config["form"] = cleaned.get("form_body") or {}
        return config


def body_kind_of(stored: dict[str, Any]) -> str:
    """Return the way in which a stored body is written most simply."""
    if "form" in stored:
        return "form"
    if "json" not in stored:
        return "arguments"
    return "fields" if is_flat(stored["json"]) else "json"
