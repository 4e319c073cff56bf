"""The rules of a gate: each is met and not met by the figures it judges."""

import pytest

from runs.evaluation.gate import GateFigures, GateResult, GateRules, judge_gate


def figures(**fields) -> GateFigures:
    defaults = {"runs": 10, "passed": 9, "p95_seconds": 2.0, "cost_per_run": 0.01}
    return GateFigures(**{**defaults, **fields})


def unmet(rules: GateRules, draft: GateFigures, **more) -> list[str]:
    found = judge_gate(rules, draft, **{"baseline": figures(), **more})
    return [rule.kind for rule in found if not rule.is_met]


def test_a_draft_at_the_limit_meets_every_rule():
    rules = GateRules(
        min_pass_rate=0.9,
        must_pass_tag="must",
        max_p95_seconds=2.0,
        max_cost_increase=20,
    )
    draft = figures(tagged_runs=3, tagged_passed=3, cost_per_run=0.012)

    found = judge_gate(rules, draft, baseline=figures(), conclusion="could_be_chance")

    assert [rule.kind for rule in found] == [
        *("scored", "pass_rate", "must_pass", "regression", "p95", "cost"),
    ]
    assert GateResult(rules=found).is_met


@pytest.mark.parametrize(
    ("rules", "draft", "more", "kind"),
    [
        (GateRules(min_pass_rate=0.91), figures(), {}, "pass_rate"),
        (
            GateRules(must_pass_tag="must"),
            figures(tagged_runs=3, tagged_passed=2),
            {},
            "must_pass",
        ),
        (
            GateRules(must_pass_tag="mist"),  # no example has it
            figures(tagged_runs=0, tagged_passed=0),
            {},
            "must_pass",
        ),
        (GateRules(), figures(), {"conclusion": "probably_worse"}, "regression"),
        (GateRules(), figures(), {"conclusion": "clearly_worse"}, "regression"),
        (GateRules(max_p95_seconds=1.9), figures(), {}, "p95"),
        (GateRules(max_p95_seconds=1.9), figures(p95_seconds=None), {}, "p95"),
        (GateRules(max_cost_increase=20), figures(cost_per_run=0.0121), {}, "cost"),
        (GateRules(), figures(unscored=1), {}, "scored"),
    ],
)
def test_one_miss_fails_one_rule(rules, draft, more, kind):
    assert unmet(rules, draft, **more) == [kind]


def test_runs_without_a_score_do_not_pass():
    assert unmet(GateRules(), figures(passed=8, unscored=2)) == ["scored", "pass_rate"]


def test_an_experiment_without_runs_meets_nothing():
    assert "scored" in unmet(GateRules(min_pass_rate=0), figures(runs=0, passed=0))


def test_a_first_version_is_compared_with_nothing():
    rules = GateRules(max_cost_increase=0)

    found = judge_gate(rules, figures())

    assert [rule.kind for rule in found] == ["scored", "pass_rate"]


def test_a_result_without_rules_is_not_met():
    assert not GateResult().is_met
