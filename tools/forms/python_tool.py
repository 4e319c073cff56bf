"""The form of a tool that is Python code, run in a sandbox."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.forms.python_examples import MONTY_MODULES, PYTHON_EXAMPLES
from tools.forms.schema import SchemaField, offer_arguments
from tools.forms.tool import ToolForm
from tools.kinds.python import (
    MAX_CODE,
    find_code_flaw,
    find_cpython_flaw,
    find_error_line,
    is_variable_name,
)
from tools.kinds.python_function import find_code_function, is_result_missing
from tools.text.translatable import translate_text
from tools.typed_generics import StrOrPromise

INTERPRETERS = [
    ("monty", _("Monty (Python subset), about 1 ms per call")),
    ("cpython", _("CPython with the standard library, about 40 ms per call")),
]

NO_RESULT = _(
    "The result is always empty, because the last statement has no value. End the code "
    "with an expression or a function."
)


class InterpreterSelect(forms.RadioSelect):
    """Interpreters; CPython cannot be selected while it is not available."""

    flaw = ""
    """Why CPython is not available."""

    def create_option(self, *args: Any, **more: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(*args, **more)
        if self.flaw and option["value"] == "cpython" and not option["selected"]:
            option["attrs"]["disabled"] = True
        return option


class PythonToolForm(ToolForm):
    """Python code that gets the arguments as variables."""

    kind: ClassVar[str] = "python"
    kind_label: ClassVar[StrOrPromise] = _("Python code")
    kind_section_title: ClassVar[StrOrPromise] = _("Code")
    kind_fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        "code",
        "args_schema",
        "interpreter",
        "memory_mb",
    )

    examples = PYTHON_EXAMPLES
    modules = MONTY_MODULES

    code = forms.CharField(
        label=_("Code"),
        max_length=MAX_CODE,
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 14,
                "class": "mono",
                "spellcheck": "false",
                "data-code": "python",
                "data-modules": " ".join(MONTY_MODULES),
            }
        ),
        help_text=_(
            "The arguments are available as variables; the value of the last "
            "expression is the result. If a function is last, it is called with the "
            "arguments. The code runs in a sandbox without files, network and "
            "environment variables."
        ),
    )
    interpreter = forms.ChoiceField(
        label=_("Interpreter"),
        choices=INTERPRETERS,
        initial="monty",
        required=False,
        widget=InterpreterSelect,
    )
    memory_mb = forms.IntegerField(
        label=_("Memory (MB)"), min_value=4, max_value=512, initial=64
    )
    args_schema = SchemaField(
        label=_("Arguments"),
        required=False,
        help_text=_(
            "Without arguments the tool takes a single text input, the variable input."
        ),
    )

    class Meta(ToolForm.Meta):
        fields = (*ToolForm.Meta.fields, "args_schema")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.set_initial_from_config("code", "memory_mb", "interpreter")
        self.default_to_read_only()
        if self.instance.pk is None and "code" in self.fields:
            self.fields["code"].initial = PYTHON_EXAMPLES[0].code
        if isinstance(schema := self.fields.get("args_schema"), SchemaField):
            schema.code = self.instance.config.get("code", "")
        if "interpreter" in self.fields and (flaw := find_cpython_flaw()):
            self.fields["interpreter"].widget.flaw = flaw
            self.fields["interpreter"].help_text = translate_text(flaw, gettext)

    def clean_code(self) -> str:
        """Refuse code with syntax errors, without running it."""
        code: str = self.cleaned_data["code"].replace("\r\n", "\n")
        if flaw := find_code_flaw(code):
            line = find_error_line(flaw)
            self.fields["code"].widget.attrs["data-error-line"] = line
            self.fields["code"].widget.attrs["data-error-text"] = flaw
            raise ValidationError(translate_text(flaw, gettext))
        return code

    def clean_interpreter(self) -> str:
        """Refuse CPython if it is disabled or its sandbox fails the check."""
        chosen: str = self.cleaned_data["interpreter"] or "monty"
        if chosen == "cpython" and (flaw := find_cpython_flaw()):
            raise ValidationError(translate_text(flaw, gettext))
        return chosen

    def clean_args_schema(self) -> dict[str, Any] | None:
        """Refuse arguments that cannot be variables."""
        schema: dict[str, Any] | None = self.cleaned_data["args_schema"]
        for name in (schema or {}).get("properties", {}):
            if not is_variable_name(name):
                raise ValidationError(
                    _("“%(name)s” is not a valid name of a Python variable.")
                    % {"name": name}
                )
        return schema

    def clean(self) -> dict[str, Any] | None:
        """Refuse arguments that the function of the code does not take."""
        given = self.cleaned_data
        function = find_code_function(given["code"]) if "code" in given else None
        if function is not None and (schema := given.get("args_schema")):
            names = list(schema.get("properties", {}))
            if mismatch := function.find_mismatch(names):
                sentence = translate_text(mismatch, gettext)
                missing = function.find_missing(names)
                self.add_error("args_schema", offer_arguments(sentence, missing))
        return super().clean()

    @property
    def no_result(self) -> StrOrPromise:
        """A sentence if the typed code never has a result; empty otherwise."""
        is_missing = is_result_missing(str(self["code"].value() or ""))
        return NO_RESULT if is_missing else ""

    def config(self) -> dict[str, Any]:
        config = {
            "code": self.cleaned_data["code"],
            "memory_mb": self.cleaned_data["memory_mb"],
        }
        chosen = self.cleaned_data["interpreter"]
        return config if chosen == "monty" else {**config, "interpreter": chosen}
