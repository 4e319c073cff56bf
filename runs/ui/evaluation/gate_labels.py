"""What a gate requires and found, for pages."""

from collections.abc import Callable
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from runs.evaluation.gate import GateResult, RuleResult
from runs.services.gates.replay import ReplayedRun
from runs.ui.format import dollars, duration, format_number
from tools.text.translatable import translate_text

CHANGE_LABELS: dict[str, Promise] = {
    "same": gettext_lazy("Unchanged"),
    "arguments": gettext_lazy("Other arguments"),
    "new_call": gettext_lazy("New call"),
    "fewer": gettext_lazy("Fewer calls"),
    "no_recording": gettext_lazy("No recording"),
    "failed": gettext_lazy("Failed"),
    "running": gettext_lazy("Running"),
}
CHANGE_TONES = {"new_call": "need", "arguments": "need", "failed": "bad"}


class GateLine(NamedTuple):
    """One rule."""

    is_met: bool
    label: str
    required: str
    baseline: str
    candidate: str
    note: str = ""


class ReplayPart(NamedTuple):
    """How many replays changed in one way, as a part of a bar in percent."""

    change: str
    label: str
    runs: int
    start: float
    width: float


def list_gate_lines(result: GateResult) -> list[GateLine]:
    """Return the rules in the order in which they are judged."""
    return [describe_rule(rule) for rule in result.rules]


def describe_rule(rule: RuleResult) -> GateLine:
    words: tuple[str, str, Callable[[float], str]]
    match rule.kind:
        case "scored":
            words = (_("Runs with a score"), _("all"), format_whole_count)
        case "pass_rate":
            at_least = _("at least %(value)s") % {
                "value": format_gate_rate(rule.required or 0)
            }
            words = (_("Pass rate"), at_least, format_gate_rate)
        case "must_pass":
            label = _("Runs tagged %(tag)s") % {"tag": rule.tag}
            words = (label, _("all pass"), format_whole_count)
        case "regression":
            return GateLine(
                rule.is_met,
                _("Against the published version"),
                _("not worse"),
                "",
                "",
                describe_changes(rule),
            )
        case "p95":
            at_most = _("at most %(value)s") % {"value": duration(rule.required)}
            words = (_("p95 time"), at_most, format_seconds)
        case "cost":
            more = _("at most %(value)s%% more") % {
                "value": format_plain(rule.required or 0)
            }
            words = (_("Cost per run"), more, format_cost)
    label, required, shown = words
    return GateLine(
        rule.is_met,
        label,
        required,
        "" if rule.baseline is None else shown(rule.baseline),
        "" if rule.candidate is None else shown(rule.candidate),
        describe_missing(rule),
    )


def describe_missing(rule: RuleResult) -> str:
    """Say how many runs are missing, for rules that all runs must meet."""
    if rule.kind not in ("scored", "must_pass") or rule.is_met:
        return ""
    missing = int((rule.required or 0) - (rule.candidate or 0))
    if rule.kind == "scored":
        return ngettext(
            "%(count)d failed or has no score",
            "%(count)d failed or have no score",
            missing,
        ) % {"count": missing}
    if not rule.required:
        return _("no example has this tag")
    return ngettext("%(count)d did not pass", "%(count)d did not pass", missing) % {
        "count": missing
    }


def describe_changes(rule: RuleResult) -> str:
    worse = ngettext(
        "%(count)d example is worse", "%(count)d examples are worse", rule.worse
    ) % {"count": rule.worse}
    better = ngettext("%(count)d is better", "%(count)d are better", rule.better) % {
        "count": rule.better
    }
    return pgettext("between items of a list", ", ").join([worse, better])


def format_gate_rate(part: float) -> str:
    """Return a percentage that never rounds up to 100 or to a limit."""
    value = int(part * 1000 + 1e-6) / 10
    return f"{format_plain(value)}%"


def format_plain(value: float) -> str:
    """Return a number without a zero after the point."""
    return format_number(value, places=0 if value == int(value) else None)


def format_cost(value: float) -> str:
    return dollars(value) or "$0"


def format_whole_count(value: float) -> str:
    return format_number(int(value))


def format_seconds(value: float) -> str:
    return duration(value)


def describe_gate(result: GateResult) -> str:
    if result.is_met:
        return _("Gate met")
    unmet = len(result.unmet)
    return ngettext(
        "%(unmet)d of %(count)d rule not met",
        "%(unmet)d of %(count)d rules not met",
        len(result.rules),
    ) % {"unmet": unmet, "count": len(result.rules)}


def describe_replayed_run(one: ReplayedRun) -> str:
    tools = pgettext("between items of a list", ", ").join(one.tools)
    match one.change:
        case "new_call":
            return _("would send %(tools)s; the version did not") % {"tools": tools}
        case "fewer":
            return _("no longer calls %(tools)s as often") % {"tools": tools}
        case "no_recording":
            return _("%(tools)s has no recorded result") % {"tools": tools}
        case "arguments":
            return _("calls %(tools)s with other arguments") % {"tools": tools}
        case "failed":
            return (
                one.run.get_stop_reason_display()
                or translate_text(one.run.error_message, _)[:200]
            )
        case "running":
            return ""
        case "same":
            return _("same calls")


def list_replay_parts(counts: dict[str, int]) -> list[ReplayPart]:
    """Return the parts of the bar in the order of the labels."""
    total = sum(counts.values()) or 1
    parts, start = [], 0.0
    for change, label in CHANGE_LABELS.items():
        if count := counts.get(change, 0):
            width = round(100 * count / total, 2)
            parts.append(ReplayPart(change, str(label), count, start, width))
            start += width
    return parts
