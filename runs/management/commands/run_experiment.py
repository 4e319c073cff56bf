"""`run_experiment NAME`: run an experiment again, wait for it and judge it."""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.evaluation.gate import GateResult, RuleResult
from runs.management.site_command import SiteCommand
from runs.models import Experiment
from runs.services.errors import RunsError
from runs.services.experiments.advance import BUDGET_USED
from runs.services.experiments.control import stop_experiment
from runs.services.experiments.repeat import (
    DRAFT,
    find_experiment,
    repeat_experiment,
)
from runs.services.experiments.report import (
    CandidateReport,
    ExperimentReport,
    build_experiment_report,
    build_junit,
)
from runs.services.gates.state import find_draft_gate, judge_experiment
from runs.services.health.queue import find_live_workers
from runs.ui.evaluation.failures import count_failures
from runs.whole_number import parse_whole_number

POLL_SECONDS = 0.5
BELOW = 1
"""Exit code if the candidate is below --fail-under or does not pass its gate."""
OTHER_GATE = (
    "The gate of the agent is not judged: it requires other examples, evaluators or "
    "settings, or they have changed meanwhile."
)
NO_RESULT = 2
"""Exit code if there is no result: a wrong argument, a stopped experiment."""
INTERRUPTED = 130


class Command(SiteCommand):
    """Repeat an experiment with the newest examples and evaluators."""

    help = (
        "Run an experiment again and wait for its result. Exit 1 if its last candidate "
        "is below --fail-under or does not pass the gate of its agent, 2 if there is "
        "no result. Workers execute the runs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="Its name or number.")
        parser.add_argument(
            "--owner",
            default="",
            metavar="USERNAME",
            help="Whose experiment, if those of several users have that name.",
        )
        parser.add_argument(
            "--candidate",
            default="",
            metavar="draft|N",
            help="Compare the draft or version N with the newest version (default: "
            "the candidates that the experiment had).",
        )
        parser.add_argument(
            "--fail-under",
            type=float,
            metavar="RATE",
            help="Minimum pass rate, from 0 to 1. Runs without a score do not pass.",
        )
        parser.add_argument(
            "--junit", metavar="FILE", help="Also write a JUnit file for CI servers."
        )
        parser.add_argument(
            "--json", action="store_true", help="Print one JSON object instead."
        )
        parser.add_argument(
            "--timeout",
            type=float,
            metavar="SECONDS",
            help="Stop the experiment after this time (default: wait until it ends).",
        )

    def handle(self, *_: Any, name: str, **options: Any) -> None:
        check_options(**options)
        least = options["fail_under"]
        try:
            former = find_experiment(name, owner=options["owner"])
            experiment = repeat_experiment(
                former, by=former.owner, candidate=options["candidate"]
            )
        except RunsError as refused:
            raise CommandError(str(refused), returncode=NO_RESULT) from None
        self.stderr.write(
            f"Experiment {experiment.pk} ({experiment.name}): {experiment.total} runs, "
            f"/experiments/{experiment.pk}/"
        )
        has_timed_out = self.wait_for_end(experiment, options["timeout"])
        gate = self.judge_gate(experiment)
        report = build_experiment_report(experiment)
        problem = find_failure(report, gate, least)
        is_ended = experiment.status == Experiment.Status.DONE
        if options["json"]:
            shape = {
                **report.model_dump(mode="json"),
                "passed": is_ended and not problem,
                "fail_under": least,
                "gate": None if gate is None else list_rule_shapes(gate),
            }
            self.stdout.write(json.dumps(shape, indent=2, ensure_ascii=False))
        else:
            lines = list_report_lines(report, count_failures(experiment))
            for line in [*lines, *list_rule_lines(gate)]:
                self.stdout.write(line)
        if options["junit"]:
            write_text(Path(options["junit"]), build_junit(experiment))
        if has_timed_out:
            raise CommandError(
                f"The experiment was stopped after {options['timeout']:g} "
                "seconds (--timeout). Resume it on its page.",
                returncode=NO_RESULT,
            )
        if not is_ended:
            raise CommandError(describe_stop(experiment), returncode=NO_RESULT)
        if problem:
            raise CommandError(problem, returncode=BELOW)

    def judge_gate(self, experiment: Experiment) -> GateResult | None:
        """Return what the gate of the agent says; say so if it cannot."""
        gate = judge_experiment(experiment)
        is_ended = experiment.status == Experiment.Status.DONE
        if is_ended and gate is None and find_draft_gate(experiment) is not None:
            self.stderr.write(OTHER_GATE)
        return gate

    def wait_for_end(self, experiment: Experiment, timeout: float | None) -> bool:
        """Wait until the experiment has ended; stop it at Ctrl-C and timeout.

        Returns whether it was stopped at the timeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        shown, has_warned = -1, False
        try:
            while True:
                experiment.refresh_from_db()
                over = experiment.cells.filter(state__in=("done", "refused")).count()
                if over != shown:
                    self.stderr.write(f"{over} of {experiment.total} runs")
                    shown = over
                if not experiment.is_running:
                    return False
                if not has_warned and not find_live_workers():
                    has_warned = True
                    self.stderr.write(
                        "No worker is running. Start one: runs begin when it is there."
                    )
                if deadline is not None and time.monotonic() >= deadline:
                    is_stopped = stop_experiment(experiment, by=experiment.owner)
                    experiment.refresh_from_db()
                    return is_stopped
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            stop_experiment(experiment, by=experiment.owner)
            self.stderr.write(
                f"Experiment {experiment.pk} stopped. Resume it on its page."
            )
            sys.exit(INTERRUPTED)


def check_options(
    *,
    fail_under: float | None,
    timeout: float | None,
    candidate: str,
    junit: str | None,
    **_others: Any,
) -> None:
    """Raise before anything is run if the value of an option is wrong."""
    problem = ""
    if fail_under is not None and not 0 <= fail_under <= 1:
        problem = "--fail-under must be from 0 to 1, such as 0.9."
    elif timeout is not None and not 0 <= timeout < math.inf:
        problem = "--timeout must be 0 or more seconds, such as 600."
    elif candidate and candidate != DRAFT and not parse_whole_number(candidate):
        problem = (
            f"--candidate must be draft or the number of a version, not {candidate!r}."
        )
    if problem:
        raise CommandError(problem, returncode=NO_RESULT)
    if junit:
        check_folder(Path(junit))


def check_folder(path: Path) -> None:
    """Raise before anything is run if the file could not be written at the end."""
    if path.is_dir():
        raise CommandError(f"--junit: {path} is a folder.", returncode=NO_RESULT)
    if not path.parent.is_dir():
        raise CommandError(
            f"--junit: the folder {path.parent} does not exist.", returncode=NO_RESULT
        )


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}.", returncode=NO_RESULT
        ) from None


def find_failure(
    report: ExperimentReport, gate: GateResult | None, least: float | None
) -> str:
    """Return why the last candidate fails; empty if it does not."""
    last = report.candidates[-1]
    rate = compute_strict_rate(last)
    if least is not None and (rate is None or rate < least):
        return (
            f"{last.label} is below --fail-under: {format_pass_rate(rate)} instead of "
            f"at least {least:.1%}."
        )
    if gate is not None and not gate.is_met:
        kinds = ", ".join(rule.kind.replace("_", " ") for rule in gate.unmet)
        return f"{last.label} does not pass the gate of its agent: {kinds}."
    return ""


def compute_strict_rate(candidate: CandidateReport) -> float | None:
    """Return the part of all runs that passed; None before the first has ended."""
    figures = candidate.figures
    if figures is None or not figures.total:
        return None
    return figures.passed / figures.total


def list_report_lines(
    report: ExperimentReport, failures: dict[int, list[tuple[str, int]]]
) -> list[str]:
    """Return a line for each candidate, and for each comparison.

    `failures` are the kinds of errors of each candidate, with their counts.
    """
    lines = []
    for one in report.candidates:
        found = one.figures
        if found is None:
            lines.append(f"{one.label}: no run has ended")
            continue
        kinds = failures.get(one.candidate, [])
        named = ", ".join(f"{label}: {count}" for label, count in kinds)
        failed = f"failed ({named})" if named else "failed"
        rest = ((failed, found.failed), ("not scored", found.not_scored))
        more = "".join(f", {count} {word}" for word, count in rest if count)
        lines.append(
            f"{one.label}: {found.passed} of {found.total} passed "
            f"({format_pass_rate(compute_strict_rate(one))}){more}, ${found.cost:.4f}"
        )
    labels = {one.candidate: one.label for one in report.candidates}
    lines += [
        f"{labels[one.candidate]} against {report.candidates[0].label}: "
        f"{one.kind.replace('_', ' ')}, {one.better} better, {one.worse} worse, "
        f"{one.same} the same"
        for one in report.comparisons
    ]
    if count := report.calls_not_recorded:
        lines.append(f"{count} call{'s' if count > 1 else ''} had no recording")
    return lines


def list_rule_shapes(gate: GateResult) -> list[dict[str, Any]]:
    return [rule.model_dump(mode="json") for rule in gate.rules]


def list_rule_lines(gate: GateResult | None) -> list[str]:
    """Return a line for each rule of the gate; none without a gate."""
    return [
        f"Gate, {describe_rule_figures(rule)}: {'met' if rule.is_met else 'not met'}"
        for rule in (gate.rules if gate else ())
    ]


def describe_rule_figures(rule: RuleResult) -> str:
    """Return the name of a rule with what it requires and what was found."""
    name = f"{rule.kind} {rule.tag}".replace("_", " ").strip()
    if rule.kind == "regression":
        return f"{name} ({rule.better} better, {rule.worse} worse)"
    found = "none" if rule.candidate is None else f"{rule.candidate:g}"
    if rule.kind == "cost":
        return (
            f"{name} (${found} per run, published ${rule.baseline or 0:g}, at most "
            f"{rule.required:g}% more)"
        )
    return f"{name} ({found}, required {rule.required:g})"


def format_pass_rate(rate: float | None) -> str:
    return "no result" if rate is None else f"{rate:.1%}"


def describe_stop(experiment: Experiment) -> str:
    """Say why the experiment did not end by itself."""
    if experiment.problem == BUDGET_USED:
        return f"The experiment stopped at its budget of ${experiment.budget}."
    return f"The experiment was stopped. {experiment.problem}".strip()
