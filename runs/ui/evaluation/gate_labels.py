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
    "refused": gettext_lazy("Calls refused"),
    "no_recording": gettext_lazy("No recording"),
    "failed": gettext_lazy("Failed"),
    "running": gettext_lazy("Running"),
}
CHANGE_TONES = {
    "new_call": "need",
    "arguments": "need",
    "refused": "bad",
    "failed": "bad",
}


class GateLine(NamedTuple):
    is_met: bool
    label: str
    required: str
    baseline: str
    candidate: str
    note: str = ""
    show: str = ""
    """The filter of the experiment that shows what `note` is about."""


class Regressions(NamedTuple):
    """The examples on which a draft is worse than the published version."""

    examples: int = 0
    tags: tuple[str, ...] = ()
    """Those that all of them have."""


class ReplayPart(NamedTuple):
    """How many replays changed in one way, as a part of a bar in percent."""

    change: str
    label: str
    runs: int
    start: float
    width: float


def list_gate_lines(result: GateResult, regressions: Regressions) -> list[GateLine]:
    """Return the rules in the order in which they are judged."""
    return [describe_rule(rule, regressions) for rule in result.rules]


def describe_rule(rule: RuleResult, regressions: Regressions) -> GateLine:
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
                describe_changes(rule, regressions),
                show="worse" if rule.worse else "",
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
    note = describe_missing(rule)
    show = "unscored" if note and rule.kind == "scored" else ""
    if rule.kind in ("pass_rate", "must_pass") and not rule.is_met:
        note = note or describe_regressions(regressions)
        show = "worse" if regressions.examples else ""
    return GateLine(
        rule.is_met,
        label,
        required,
        "" if rule.baseline is None else shown(rule.baseline),
        "" if rule.candidate is None else shown(rule.candidate),
        note,
        show,
    )


def explain_unmet_rule(rule: RuleResult) -> str:
    """Say what the draft has and what the gate requires."""
    found, required = rule.candidate or 0, rule.required or 0
    missing = int(required - found)
    match rule.kind:
        case "scored":
            return ngettext(
                "%(count)d run failed or has no score. The gate requires one of each "
                "run.",
                "%(count)d runs failed or have no score. The gate requires one of each "
                "run.",
                missing,
            ) % {"count": missing}
        case "pass_rate":
            words = _("The pass rate is %(rate)s. The gate requires %(required)s.")
            rates = {"rate": found, "required": required}
            return words % {key: format_gate_rate(one) for key, one in rates.items()}
        case "must_pass" if not required:
            words = _("No example has the tag %(tag)s, which the gate requires.")
            return words % {"tag": rule.tag}
        case "must_pass":
            return ngettext(
                "%(count)d run tagged %(tag)s did not pass. The gate requires all.",
                "%(count)d runs tagged %(tag)s did not pass. The gate requires all.",
                missing,
            ) % {"count": missing, "tag": rule.tag}
        case "regression":
            return _("The draft is worse than the published version.")
        case "p95" if rule.candidate is None:
            return _("No run has a time, of which the gate requires one.")
        case "p95":
            words = _("The p95 time is %(time)s. The gate allows %(required)s.")
            return words % {"time": duration(found), "required": duration(required)}
        case "cost":
            words = _(
                "A run costs %(cost)s instead of %(before)s. The gate allows "
                "%(required)s%% more."
            )
            return words % {
                "cost": format_cost(found),
                "before": format_cost(rule.baseline or 0),
                "required": format_plain(required),
            }


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


def describe_regressions(found: Regressions) -> str:
    """Say how many examples are worse, and which tags all of them have."""
    if not found.examples:
        return ""
    if not found.tags:
        return ngettext(
            "%(count)d example is worse",
            "%(count)d examples are worse",
            found.examples,
        ) % {"count": found.examples}
    return ngettext(
        "%(count)d example is worse, tagged %(tags)s",
        "%(count)d examples are worse, all tagged %(tags)s",
        found.examples,
    ) % {
        "count": found.examples,
        "tags": pgettext("between items of a list", ", ").join(found.tags),
    }


def describe_changes(rule: RuleResult, regressions: Regressions) -> str:
    tags = regressions.tags if regressions.examples == rule.worse else ()
    worse = describe_regressions(Regressions(rule.worse, tags))
    better = ngettext("%(count)d is better", "%(count)d are better", rule.better) % {
        "count": rule.better
    }
    return pgettext("between items of a list", ", ").join(filter(None, [worse, better]))


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
        case "refused":
            return _("calls %(tools)s, which now refuses the call") % {"tools": tools}
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
