"""The form of a tool that is a registered Python function."""

from typing import Any, ClassVar

from django import forms

from tools.forms.tool import ToolForm
from tools.models import Tool
from tools.registry import find_function, keeps_hosts, registered

Groups = list[tuple[str, list[tuple[str, str]]]]

NOT_KEPT = (
    "The function does not declare keeps_hosts=True, so nothing would hold it to these "
    "hosts."
)

DECLARED = ("name", "description", "effect", "timeout")
"""Fields that may stay empty: the function says them."""


class FunctionToolForm(ToolForm):
    """Pick a function; what is left empty is as the function declares it."""

    kind: ClassVar[str] = "function"
    word: ClassVar[str] = "Python function"
    own_title: ClassVar[str] = "What it calls"
    own_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        "function",
        "arguments_shown",
    )

    function = forms.ChoiceField(
        help_text="Functions that the operator registered with @tool, in the modules "
        "of AGENTSITE_TOOL_MODULES and in the product itself.",
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        path = str(self.instance.config.get("function", ""))
        field = self.fields.get("function")
        if isinstance(field, forms.ChoiceField):
            field.choices = choices_with(path)
            field.initial = path
        if "hosts" in self.fields:
            self.fields["hosts"].help_text = (
                "Only for functions that declare keeps_hosts, such as "
                "web_page and web_search; others reach what they like. One a "
                "line, empty for no limit."
            )
        if self.instance.pk is None:
            for name in DECLARED:
                if name in self.fields:
                    self.fields[name].required = False
                    self.fields[name].initial = None
                    told = self.fields[name].help_text
                    self.fields[
                        name
                    ].help_text = f"{told} Empty: as the function declares."
            if "approval" in self.fields:
                self.fields["approval"].initial = Tool.Approval.NEVER

    def clean(self) -> dict[str, Any] | None:
        """Fill what was left empty from the function's declaration."""
        cleaned = super().clean()
        path = (cleaned or {}).get("function")
        if cleaned and path and cleaned.get("hosts") and not keeps_hosts(path):
            self.add_error("hosts", NOT_KEPT)
        if cleaned is not None and path and self.instance.pk is None:
            function = find_function(path)
            for name in DECLARED:
                cleaned[name] = cleaned.get(name) or getattr(function, name)
        return cleaned

    def config(self) -> dict[str, Any]:
        """Return the path of the function."""
        return {"function": self.cleaned_data["function"]}


def choices_with(path: str) -> Groups:
    """Return the registered functions by module, and `path` even if it is gone."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for function in registered().values():
        module, _, name = function.path.partition(":")
        sentence = function.description.partition("\n")[0]
        groups.setdefault(module, []).append(
            (function.path, f"{name}: {sentence}" if sentence else name)
        )
    if path and path not in registered():
        groups["Not registered any more"] = [(path, path)]
    return [("", [("", "choose one")]), *groups.items()]
