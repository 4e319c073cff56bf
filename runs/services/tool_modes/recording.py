"""The recording of a run: its tool calls, as answers for another run."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.models import AgentStep, Decision, StepMedia
from runs.store.history import MEDIA_NAMED

AnsweredBy = AgentStep.AnsweredBy
RECORDED_FIELDS = (
    *("index", "tool", "tool_input", "status", "observation", "value", "effect"),
)


@dataclass
class RecordedCall:
    """An answered call, which answers one call of a replay."""

    step: AgentStep
    arguments: str
    """What the model requested, in canonical form."""
    is_used: bool = False


@dataclass
class Recording:
    """The calls of a run by tool, each of which answers once."""

    calls: dict[str, list[RecordedCall]] = field(default_factory=dict)
    next_unused: dict[str, int] = field(default_factory=dict)
    """For each tool the place before which all calls are used."""

    def take_call(
        self, tool: str, tool_input: Any, *, any_arguments: bool
    ) -> RecordedCall | None:
        """Return the first unused call with equal arguments.

        With `any_arguments`, the first unused one of the tool if there is none.
        """
        left = self._list_unused(tool)
        wanted = canonical_arguments(tool_input)
        found = next((one for one in left if one.arguments == wanted), None)
        if found is None and any_arguments and left:
            found = left[0]
        if found is not None:
            found.is_used = True
        return found

    def _list_unused(self, tool: str) -> list[RecordedCall]:
        calls, start = self.calls.get(tool, []), self.next_unused.get(tool, 0)
        while start < len(calls) and calls[start].is_used:
            start += 1
        self.next_unused[tool] = start
        return [one for one in calls[start:] if not one.is_used]


def load_recording(run_id: int | None) -> Recording:
    """Return the answered calls of a run; empty if it no longer exists.

    Steps without a tool are answered by the engine, and so by that of a replay.
    """
    recording = Recording()
    if run_id is None:
        return recording
    rows = AgentStep.objects.filter(run=run_id, status__in=AgentStep.ANSWERED)
    rows = rows.exclude(effect="").exclude(answered_by=AnsweredBy.NO_RECORDING)
    requested = load_requested_arguments(run_id)
    for step in rows.only(*RECORDED_FIELDS).order_by("index"):
        asked = requested.get(step.pk, step.tool_input)
        call = RecordedCall(step, canonical_arguments(asked))
        recording.calls.setdefault(step.tool, []).append(call)
    return recording


def load_requested_arguments(run_id: int) -> dict[int, Any]:
    """Return what the model requested if a person has edited the arguments."""
    edited = Decision.objects.filter(step__run=run_id, edited_input__isnull=False)
    found: dict[int, Any] = {}
    for step, shown in edited.order_by("pk").values_list("step", "shown"):
        found.setdefault(step, shown.get("tool_input"))
    return found


def canonical_arguments(value: Any) -> str:
    """Return arguments as a text that is equal for equal calls: 1.0 is 1."""
    return json.dumps(_plain_numbers(value), sort_keys=True, ensure_ascii=False)


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain_numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(one) for one in value]
    return value


def names_media(step: AgentStep) -> bool:
    return MEDIA_NAMED.search(step.observation) is not None


def copy_recorded_media(pairs: Iterable[tuple[AgentStep, AgentStep]]) -> None:
    """Give replayed steps the images and sounds of the recorded ones; once.

    Each pair is (recorded, replayed); both are stored.
    """
    named = {
        recorded.pk: replayed for recorded, replayed in pairs if names_media(recorded)
    }
    StepMedia.objects.bulk_create(
        _copy_media(StepMedia.objects.filter(step__in=named), named),
        ignore_conflicts=True,
    )


def _copy_media(
    rows: Iterable[StepMedia], replayed: dict[int, AgentStep]
) -> Sequence[StepMedia]:
    return [
        StepMedia(
            step=replayed[one.step_id],
            position=one.position,
            media_type=one.media_type,
            content=one.content,
        )
        for one in rows
    ]
