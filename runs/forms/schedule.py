"""The form of a schedule: when it is due, in which zone, and with which inputs."""

from collections.abc import Iterable, Mapping
from datetime import time
from functools import cache
from itertools import groupby
from typing import Any, cast

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.engine.types import AgentSpec
from runs.forms.runs.inputs import build_run_input_field, input_field_name
from runs.forms.widgets import style_widgets
from runs.models import Schedule
from runs.services.errors import CronRefused, FieldError, InputsRefused
from runs.services.runs.start import validate_inputs
from runs.services.schedules.cron import MAX_CRON_CHARS, list_time_zones, validate_cron
from runs.services.schedules.recurrence import (
    CRON_WEEKDAYS,
    DAYS_OF_MONTH,
    LAST_DAY_OF_MONTH,
    MINUTE_STEPS,
    Recurrence,
    RecurrenceKind,
    parse_cron,
)
from runs.services.spec.freeze import variables_of_spec

SCHEDULE_KINDS: tuple[tuple[RecurrenceKind, Any], ...] = (
    ("minutes", gettext_lazy("Every few minutes")),
    ("hourly", gettext_lazy("Every hour")),
    ("daily", gettext_lazy("Every day")),
    ("weekdays", gettext_lazy("Monday to Friday")),
    ("weekly", gettext_lazy("Every week")),
    ("monthly", gettext_lazy("Every month")),
    ("cron", gettext_lazy("Cron expression")),
)
KIND_FIELDS: dict[str, tuple[str, ...]] = {
    "minutes": ("every",),
    "hourly": ("minute",),
    "daily": ("at",),
    "weekdays": ("at",),
    "weekly": ("days", "at"),
    "monthly": ("day", "at"),
    "cron": ("cron",),
}
"""The fields each kind uses; the others are ignored."""
TIME_FIELDS = ("every", "minute", "at", "days", "day", "cron")


class ZoneSelect(forms.Select):
    """A select of hundreds of time zones, rendered once instead of per option."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        flat = flatatt({**self.build_attrs(self.attrs, attrs), "name": name})
        options = zone_options()
        chosen = format_html('<option value="{}"', value)
        if isinstance(value, str) and value in list_time_zones():
            options = SafeString(options.replace(chosen, f"{chosen} selected", 1))
        return format_html("<select{}>{}</select>", flat, options)


@cache
def zone_options() -> SafeString:
    """Return the options of all time zones, grouped by area."""
    option = '<option value="{}">{}</option>'
    utc, *areas = zone_choices()
    parts = [format_html(option, *utc)]
    for area, zones in areas:
        listed = format_html_join("", option, zones)
        parts.append(format_html('<optgroup label="{}">{}</optgroup>', area, listed))
    return SafeString("".join(parts))


def zone_choices() -> list[tuple[str, Any]]:
    """Return the time zones grouped by area, with readable place names."""
    utc, *names = list_time_zones()
    areas = groupby(names, key=lambda name: name.split("/")[0])
    return [(utc, utc)] + [
        (area, [(n, n.partition("/")[2].replace("_", " ")) for n in group])
        for area, group in areas
    ]


class ScheduleTimesForm(forms.Form):
    """The times of a schedule; the preview of upcoming times needs no more."""

    kind = forms.ChoiceField(choices=SCHEDULE_KINDS, label=gettext_lazy("Repeats"))
    every = forms.TypedChoiceField(
        choices=lambda: list_minute_steps(),
        coerce=int,
        label=gettext_lazy("Interval"),
    )
    minute = forms.IntegerField(
        min_value=0, max_value=59, label=gettext_lazy("Minutes past the hour")
    )
    days = forms.MultipleChoiceField(
        choices=list(CRON_WEEKDAYS.items()),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label=gettext_lazy("Weekdays"),
    )
    day = forms.ChoiceField(
        choices=[
            (day, gettext_lazy("Last day") if day == LAST_DAY_OF_MONTH else day)
            for day in DAYS_OF_MONTH
        ],
        label=gettext_lazy("Day of the month"),
    )
    at = forms.TimeField(
        widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"}),
        label=gettext_lazy("Time"),
        error_messages={
            "invalid": gettext_lazy("Enter a time such as 09:00."),
            "required": gettext_lazy("Enter a time such as 09:00."),
        },
    )
    cron = forms.CharField(
        max_length=MAX_CRON_CHARS,
        widget=forms.TextInput(
            attrs={"class": "mono", "placeholder": "0 9 * * 1-5", "spellcheck": "false"}
        ),
        label=gettext_lazy("Cron expression"),
        help_text=gettext_lazy(
            "Five fields: minute, hour, day of the month, month, day of the week."
        ),
        error_messages={
            "max_length": gettext_lazy(
                "Enter at most %(limit_value)d characters for the five fields."
            ),
            "required": gettext_lazy("Enter five fields, for example 0 9 * * 1-5."),
        },
    )
    time_zone = forms.ChoiceField(
        choices=zone_choices,
        widget=ZoneSelect,
        label=gettext_lazy("Time zone"),
        error_messages={
            "invalid_choice": gettext_lazy("Select a time zone from the list.")
        },
    )

    def __init__(
        self, *args: Any, more: Mapping[str, forms.Field] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.fields |= more or {}
        for name, value in initial_of_times(Recurrence()).items():
            self.initial.setdefault(name, value)
        for name in TIME_FIELDS:
            field = self.fields[name]
            field.is_needed = True  # type: ignore[attr-defined]  # required by its kind
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        """Check the fields of the selected kind; other fields are ignored."""
        given = super().clean() or {}
        kind = given.get("kind", "")
        for name in set(TIME_FIELDS) - set(KIND_FIELDS.get(kind, ())):
            self.errors.pop(name, None)
            given.pop(name, None)
        if kind == "weekly" and "days" in given and not given["days"]:
            self.add_error("days", _("Select at least one weekday."))
        if kind and not self.errors.keys() & {"kind", *KIND_FIELDS[kind]}:
            try:
                given["expression"] = validate_cron(parse_times(given).to_cron())
            except CronRefused as refused:
                self.add_error("cron", str(refused))
        return given

    @property
    def expression(self) -> str:
        """The cron expression; empty if the times are invalid."""
        return str(self.cleaned_data.get("expression", ""))


class ScheduleForm(ScheduleTimesForm):
    """A schedule of one agent; the published spec determines the inputs."""

    name = forms.CharField(max_length=120, label=gettext_lazy("Name"))
    overlap = forms.ChoiceField(
        choices=Schedule.Overlap,
        widget=forms.RadioSelect,
        label=gettext_lazy("If an earlier run is still running"),
        initial=Schedule.Overlap.SKIP,
    )

    def __init__(self, spec: AgentSpec, *args: Any, **kwargs: Any) -> None:
        self.spec, self.names = spec, variables_of_spec(spec)
        more = {
            input_field_name(name): build_run_input_field(name) for name in self.names
        }
        super().__init__(*args, more=more, **kwargs)

    def clean(self) -> dict[str, Any]:
        """Check the inputs as starting a run does."""
        given = super().clean()
        try:
            self.inputs = validate_inputs(self.spec, self._typed_inputs(given))
        except InputsRefused as refused:
            self.add_field_errors(refused.errors)
        return given

    def _typed_inputs(self, given: dict[str, Any]) -> dict[str, Any]:
        fields = {name: input_field_name(name) for name in self.names}
        return {name: given[f] for name, f in fields.items() if f in given}

    def input_fields(self) -> list[forms.BoundField]:
        """Return the input fields, the question first."""
        return [self[input_field_name(name)] for name in self.names]

    def add_field_errors(self, errors: Iterable[FieldError]) -> None:
        """Show each error at its field, unless the field already shows one."""
        for field, message in errors:
            name = input_field_name(field)
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, message)

    def apply_to(self, schedule: Schedule) -> Schedule:
        """Set the fields of `schedule` from the form, without saving."""
        given = self.cleaned_data
        schedule.name, schedule.overlap = given["name"], given["overlap"]
        schedule.cron, schedule.time_zone = self.expression, given["time_zone"]
        schedule.inputs = self.inputs
        return schedule


def initial_of_times(when: Recurrence) -> dict[str, Any]:
    return {
        "kind": when.kind,
        "every": when.every,
        "minute": when.minute,
        "at": when.at,
        "days": list(when.days),
        "day": when.day,
        "cron": when.cron or when.to_cron(),
    }


def initial_of_schedule(schedule: Schedule) -> dict[str, Any]:
    inputs = {input_field_name(name): text for name, text in schedule.inputs.items()}
    return {
        **inputs,
        **initial_of_times(parse_cron(schedule.cron)),
        "name": schedule.name,
        "time_zone": schedule.time_zone,
        "overlap": schedule.overlap,
    }


def list_minute_steps() -> list[tuple[int, str]]:
    """Return the intervals to choose from, in the active language."""
    return [
        (
            step,
            ngettext("%(count)s minute", "%(count)s minutes", step) % {"count": step},
        )
        for step in MINUTE_STEPS
    ]


def parse_times(given: dict[str, Any]) -> Recurrence:
    asked = {name: given[name] for name in KIND_FIELDS[given["kind"]]}
    if isinstance(at := asked.get("at"), time):
        asked["at"] = f"{at:%H:%M}"
    if "days" in asked:
        asked["days"] = tuple(asked["days"])
    return Recurrence(cast(RecurrenceKind, given["kind"]), **asked)
