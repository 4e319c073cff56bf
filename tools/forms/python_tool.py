"""The form of a tool that is Python code, run in a sandbox."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from tools.forms.schema import SchemaField
from tools.forms.tool import ToolForm
from tools.kinds.python import MAX_CODE, flaw_of_code, flaw_of_cpython, is_variable

INTERPRETERS = [
    ("monty", "Monty: a part of Python, 1 ms a call"),
    ("cpython", "CPython: all of it, with the standard library, 40 ms a call"),
]


class PythonToolForm(ToolForm):
    """Code whose variables are the arguments."""

    kind: ClassVar[str] = "python"
    word: ClassVar[str] = "Python code"
    own_title: ClassVar[str] = "What it runs"
    own_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        "code",
        "args_schema",
        "interpreter",
        "memory_mb",
    )

    code = forms.CharField(
        max_length=MAX_CODE,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 14, "class": "mono", "spellcheck": "false"}
        ),
        help_text="The arguments are its variables; the value of the last expression "
        "is the result. It runs in a sandbox without files, network and environment.",
    )
    interpreter = forms.ChoiceField(
        choices=INTERPRETERS,
        initial="monty",
        required=False,
        widget=forms.RadioSelect,
        help_text="CPython only where an operator switched it on (AGENTSITE_CPYTHON) "
        "and a probe shows that its sandbox holds.",
    )
    memory_mb = forms.IntegerField(
        label="Memory (MB)", min_value=4, max_value=512, initial=64
    )
    args_schema = SchemaField(
        label="Arguments",
        required=False,
        help_text="Without arguments it takes one text, the variable input.",
    )

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "args_schema")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.begin_with_config("code", "memory_mb", "interpreter")
        self.begin_as_reading()

    def clean_code(self) -> str:
        """Refuse code that cannot be read; none of it runs."""
        code: str = self.cleaned_data["code"].replace("\r\n", "\n")
        if flaw := flaw_of_code(code):
            raise ValidationError(flaw)
        return code

    def clean_interpreter(self) -> str:
        """Refuse CPython where nobody switched it on, or its sandbox does not hold."""
        chosen: str = self.cleaned_data["interpreter"] or "monty"
        if chosen == "cpython" and (flaw := flaw_of_cpython()):
            raise ValidationError(flaw)
        return chosen

    def clean_args_schema(self) -> dict[str, Any] | None:
        """Refuse arguments that cannot be variables."""
        schema: dict[str, Any] | None = self.cleaned_data["args_schema"]
        for name in (schema or {}).get("properties", {}):
            if not is_variable(name):
                raise ValidationError(f"{name!r} is no name of a Python variable.")
        return schema

    def config(self) -> dict[str, Any]:
        """Return code and memory."""
        config = {
            "code": self.cleaned_data["code"],
            "memory_mb": self.cleaned_data["memory_mb"],
        }
        chosen = self.cleaned_data["interpreter"]
        return config if chosen == "monty" else {**config, "interpreter": chosen}
