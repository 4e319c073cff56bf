"""The form of a tool that is a registered Python function."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from tools.credentials import find_usable_hosts
from tools.forms.tool import ToolForm
from tools.models import Credential, Tool
from tools.registry import find_function, get_registered_functions, supports_host_limit
from tools.typed_generics import StrOrPromise

ChoiceGroups = list[tuple[str, list[tuple[str, str]]]]

HOST_LIMIT_UNSUPPORTED = _(
    "The function does not declare keeps_hosts=True, so it cannot be restricted to "
    "these hosts. Leave the field empty."
)

SECRET_UNSUPPORTED = _(
    "The function does not declare keeps_hosts=True, so it cannot be given a "
    "credential. Select none."
)
NO_COMMON_HOST = _(
    "The credential is bound to %(hosts)s, none of which the tool can reach. Change "
    "the allowed hosts, or select another credential."
)

DECLARED_FIELDS = ("name", "description", "effect", "timeout")
"""Fields that are derived from the function if left empty."""


HELP_WITH_DEFAULT = {
    "name": _(
        "The name the model uses, in any language. Leave empty to use the name of the "
        "function."
    ),
    "description": _(
        "The model selects tools by this text. Leave empty to use the description of "
        "the function."
    ),
    "effect": _(
        "What a call can change. After a crash, read-only and idempotent calls are "
        "repeated; a person decides about others. Leave empty to derive it from the "
        "function."
    ),
    "timeout": _("Leave empty to use the timeout of the function."),
}


class FunctionToolForm(ToolForm):
    """A registered function; empty fields are derived from it."""

    kind: ClassVar[str] = "function"
    kind_label: ClassVar[StrOrPromise] = _("Python function")
    kind_section_title: ClassVar[StrOrPromise] = _("Function")
    kind_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        "function",
        "arguments_display",
        "credential",
    )

    function = forms.ChoiceField(
        label=_("Function"),
        help_text=_(
            "The built-in functions, and those registered with @tool in the modules "
            "of AGENTSITE_TOOL_MODULES."
        ),
    )

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "credential")
        help_texts = {
            **ToolForm.Meta.help_texts,
            "credential": _(
                "For functions that use the secret of a credential. They can then "
                "reach only the hosts it is bound to. Never shown."
            ),
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        if "credential" in self.fields:
            self.fields["credential"].required = False
        path = str(self.instance.config.get("function", ""))
        field = self.fields.get("function")
        if isinstance(field, forms.ChoiceField):
            field.choices = build_function_choices(path)
            field.initial = path
        if "hosts" in self.fields:
            self.fields["hosts"].help_text = _(
                "Only for functions that declare keeps_hosts, such as web_page and "
                "web_search. Other functions can reach any host. One per line; leave "
                "empty for no limit."
            )
        if self.instance.pk is None:
            for name in DECLARED_FIELDS:
                if name in self.fields:
                    self.fields[name].required = False
                    self.fields[name].initial = None
                    self.fields[name].help_text = HELP_WITH_DEFAULT[name]
            if "approval" in self.fields:
                self.fields["approval"].initial = Tool.Approval.NEVER

    def clean(self) -> dict[str, Any] | None:
        """Fill empty fields from the declaration of the function."""
        cleaned = super().clean()
        path = (cleaned or {}).get("function")
        if cleaned and path and cleaned.get("hosts") and not supports_host_limit(path):
            self.add_error("hosts", HOST_LIMIT_UNSUPPORTED)
        if cleaned and path and cleaned.get("credential"):
            self.check_credential(path, cleaned["credential"], cleaned.get("hosts"))
        if cleaned is not None and path and self.instance.pk is None:
            function = find_function(path)
            for name in DECLARED_FIELDS:
                cleaned[name] = cleaned.get(name) or getattr(function, name)
        return cleaned

    def check_credential(
        self, path: str, credential: Credential, hosts: list[str] | None
    ) -> None:
        """Refuse a credential that no call could use."""
        if not supports_host_limit(path):
            self.add_error("credential", SECRET_UNSUPPORTED)
        elif not find_usable_hosts(credential.hosts, hosts or ()):
            bindings = ", ".join(credential.hosts)
            self.add_error("credential", NO_COMMON_HOST % {"hosts": bindings})

    def config(self) -> dict[str, Any]:
        return {"function": self.cleaned_data["function"]}


def build_function_choices(path: str) -> ChoiceGroups:
    """Return the registered functions by module, and `path` even if it is gone."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for function in get_registered_functions().values():
        module, _separator, name = function.path.partition(":")
        sentence = function.description.partition("\n")[0]
        groups.setdefault(module, []).append(
            (function.path, f"{name}: {sentence}" if sentence else name)
        )
    if path and path not in get_registered_functions():
        groups[str(_("No longer registered"))] = [(path, path)]
    return [("", [("", str(_("Select one")))]), *groups.items()]
