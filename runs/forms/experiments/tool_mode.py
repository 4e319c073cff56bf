"""How tool calls of an experiment are answered, as forms ask for it."""

from django import forms
from django.utils.translation import gettext_lazy

from runs.models import Experiment

TOOL_CALLS_NOTE = gettext_lazy(
    "A replay answers calls from the source run of the example. Not held back: a tool "
    "that is declared read-only and writes nevertheless, the model server, and what "
    "Python modules of tools send outside of calls."
)


class ToolModeField(forms.ChoiceField):
    """A tool mode, with what it cannot hold back."""

    def __init__(self) -> None:
        super().__init__(
            choices=Experiment.ToolMode,
            label=gettext_lazy("Tool calls"),
            help_text=TOOL_CALLS_NOTE,
        )
