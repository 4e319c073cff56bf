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

from runs.engine.types import AgentSpec
from runs.forms.looks import dress
from runs.forms.run import field_for, name_of
from runs.models import Schedule
from runs.services.cron import LONGEST, checked_cron, zone_names
from runs.services.cron_words import (
    DAYS,
    DAYS_OF_MONTH,
    LAST,
    MINUTES,
    Kind,
    When,
    read_cron,
)
from runs.services.errors import CronRefused, FieldError, InputsRefused
from runs.services.freeze_agent import variables_of_spec
from runs.services.start_run import checked_inputs

KINDS: tuple[tuple[Kind, str], ...] = (
    ("minutes", "Every few minutes"),
    ("hourly", "Every hour"),
    ("daily", "Every day"),
    ("weekdays", "Monday to Friday"),
    ("weekly", "Every week"),
    ("monthly", "Every month"),
    ("cron", "By a cron expression"),
)
ASKED: dict[str, tuple[str, ...]] = {
    "minutes": ("every",),
    "hourly": ("minute",),
    "daily": ("at",),
    "weekdays": ("at",),
    "weekly": ("days", "at"),
    "monthly": ("day", "at"),
    "cron": ("cron",),
}
"""What each kind asks for; what is typed into other fields does not matter."""
WHEN = ("every", "minute", "at", "days", "day", "cron")


class ZoneSelect(forms.Select):
    """A select of hundreds of zones, written in one go: Django renders each option."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        """Return the select with the zone `value` chosen."""
        flat = flatatt({**self.build_attrs(self.attrs, attrs), "name": name})
        options = zone_options()
        chosen = format_html('<option value="{}"', value)
        if isinstance(value, str) and value in zone_names():
            options = SafeString(options.replace(chosen, f"{chosen} selected", 1))
        return format_html("<select{}>{}</select>", flat, options)


@cache
def zone_options() -> SafeString:
    """Return the options of all zones, by area."""
    option = '<option value="{}">{}</option>'
    (utc, _), *areas = zone_choices()
    parts = [format_html(option, utc, utc)]
    for area, zones in areas:
        listed = format_html_join("", option, zones)
        parts.append(format_html('<optgroup label="{}">{}</optgroup>', area, listed))
    return SafeString("".join(parts))


def zone_choices() -> list[tuple[str, Any]]:
    """Return the zones by area, with plain names of places."""
    utc, *names = zone_names()
    areas = groupby(names, key=lambda name: name.split("/")[0])
    return [(utc, utc)] + [
        (area, [(n, n.partition("/")[2].replace("_", " ")) for n in group])
        for area, group in areas
    ]


class WhenForm(forms.Form):
    """The times alone: what the preview needs."""

    kind = forms.ChoiceField(choices=KINDS, label="When")
    every = forms.TypedChoiceField(
        choices=[(n, f"{n} minute{'' if n == 1 else 's'}") for n in MINUTES],
        coerce=int,
        label="Every",
    )
    minute = forms.IntegerField(
        min_value=0, max_value=59, label="Minutes past the hour"
    )
    days = forms.MultipleChoiceField(
        choices=DAYS, widget=forms.CheckboxSelectMultiple, required=False, label="On"
    )
    day = forms.ChoiceField(
        choices=[
            (day, "the last day" if day == LAST else day) for day in DAYS_OF_MONTH
        ],
        label="On day",
    )
    at = forms.TimeField(
        widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"}),
        label="At",
        error_messages={
            "invalid": "Write a time like 09:00.",
            "required": "Write a time like 09:00.",
        },
    )
    cron = forms.CharField(
        max_length=LONGEST,
        widget=forms.TextInput(
            attrs={"class": "mono", "placeholder": "0 9 * * 1-5", "spellcheck": "false"}
        ),
        label="Cron expression",
        help_text="Minute, hour, day of the month, month, day of the week.",
        error_messages={
            "max_length": f"The five fields have at most {LONGEST} characters.",
            "required": "Write five fields, for example 0 9 * * 1-5.",
        },
    )
    time_zone = forms.ChoiceField(
        choices=zone_choices,
        widget=ZoneSelect,
        label="Time zone",
        error_messages={"invalid_choice": "Choose one of the zones in the list."},
    )

    def __init__(
        self, *args: Any, more: Mapping[str, forms.Field] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.fields |= more or {}
        for name, value in initial_of(When()).items():
            self.initial.setdefault(name, value)
        for name in WHEN:
            field = self.fields[name]
            field.is_needed = True  # type: ignore[attr-defined]  # by its kind
        dress(self)

    def clean(self) -> dict[str, Any]:
        """Read the times; what other kinds ask for does not matter."""
        given = super().clean() or {}
        kind = given.get("kind", "")
        for name in set(WHEN) - set(ASKED.get(kind, ())):
            self.errors.pop(name, None)
            given.pop(name, None)
        if kind == "weekly" and "days" in given and not given["days"]:
            self.add_error("days", "Choose at least one day.")
        if kind and not self.errors.keys() & {"kind", *ASKED[kind]}:
            try:
                given["expression"] = checked_cron(when_of(given).expression())
            except CronRefused as refused:
                self.add_error("cron", str(refused))
        return given

    @property
    def expression(self) -> str:
        """The five fields that were meant; empty where they are wrong."""
        return str(self.cleaned_data.get("expression", ""))


class ScheduleForm(WhenForm):
    """A whole schedule of one agent, whose published spec says what is asked for."""

    name = forms.CharField(max_length=120, label="Name")
    overlap = forms.ChoiceField(
        choices=Schedule.Overlap,
        widget=forms.RadioSelect,
        label="If an earlier run is still at work",
        initial=Schedule.Overlap.SKIP,
    )

    def __init__(self, spec: AgentSpec, *args: Any, **kwargs: Any) -> None:
        self.spec, self.names = spec, variables_of_spec(spec)
        more = {name_of(name): field_for(name) for name in self.names}
        super().__init__(*args, more=more, **kwargs)

    def clean(self) -> dict[str, Any]:
        """Check the inputs as the start of a run would."""
        given = super().clean()
        try:
            self.inputs = checked_inputs(self.spec, self._typed(given))
        except InputsRefused as refused:
            self.take(refused.errors)
        return given

    def _typed(self, given: dict[str, Any]) -> dict[str, Any]:
        fields = {name: name_of(name) for name in self.names}
        return {name: given[f] for name, f in fields.items() if f in given}

    def input_fields(self) -> list[forms.BoundField]:
        """Return the fields of the inputs, the question first."""
        return [self[name_of(name)] for name in self.names]

    def take(self, errors: Iterable[FieldError]) -> None:
        """Show each refusal at its field, where none is shown yet."""
        for field, message in errors:
            name = name_of(field)
            if name not in self.errors:
                self.add_error(name if name in self.fields else None, message)

    def fill(self, schedule: Schedule) -> Schedule:
        """Write what was typed on `schedule`; nothing is stored."""
        given = self.cleaned_data
        schedule.name, schedule.overlap = given["name"], given["overlap"]
        schedule.cron, schedule.time_zone = self.expression, given["time_zone"]
        schedule.inputs = self.inputs
        return schedule


def initial_of(when: When) -> dict[str, Any]:
    """Return what the fields show of `when`."""
    return {
        "kind": when.kind,
        "every": when.every,
        "minute": when.minute,
        "at": when.at,
        "days": list(when.days),
        "day": when.day,
        "cron": when.cron or when.expression(),
    }


def initial_of_schedule(schedule: Schedule) -> dict[str, Any]:
    """Return what the form of a stored schedule shows."""
    inputs = {name_of(name): text for name, text in schedule.inputs.items()}
    return {
        **inputs,
        **initial_of(read_cron(schedule.cron)),
        "name": schedule.name,
        "time_zone": schedule.time_zone,
        "overlap": schedule.overlap,
    }


def when_of(given: dict[str, Any]) -> When:
    """Return the times that were typed."""
    asked = {name: given[name] for name in ASKED[given["kind"]]}
    if isinstance(at := asked.get("at"), time):
        asked["at"] = f"{at:%H:%M}"
    if "days" in asked:
        asked["days"] = tuple(asked["days"])
    return When(cast(Kind, given["kind"]), **asked)
