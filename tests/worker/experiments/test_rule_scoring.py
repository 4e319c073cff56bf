"""Scoring rules take turns; a judge that waits for its model holds up no other rule."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest

from runs.models import ScoredRun, ScoringRule
from runs.worker import rule_scoring
from runs.worker.rule_scoring import IDLE_SECONDS, RuleScoring
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import make_revision
from tests.makers.scoring import end_run, make_rule
from tests.support.timing import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class SlowModel(NamedTuple):
    """A server whose replies wait for `gate`, and the paths it was asked for."""

    port: int
    gate: threading.Event
    asked: list[str]


@pytest.fixture
def model(settings):
    """A model server that holds each reply until its gate is open."""
    settings.PRIVATE_HOSTS = "provider=127.0.0.1"
    gate, asked = threading.Event(), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            gate.wait(60)
            self.send_error(503)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SlowModel(server.server_port, gate, asked)
    gate.set()
    server.shutdown()
    server.server_close()


def make_judged_rule(owner, model, name: str) -> ScoringRule:
    """Make a rule whose judge asks the server, with a run to score."""
    provider = make_provider(
        owner, slug=name, base_url=f"http://127.0.0.1:{model.port}/v1"
    )
    config = {"provider": provider.slug, "model": "m", "rubric": "Is it polite?"}
    judge = make_revision(owner, name=name, kind="judge", config=config).evaluator
    agent = make_agent(owner)
    rule = make_rule(agent, evaluators=[judge])
    end_run(agent)
    return rule


def count_scored(rule: ScoringRule) -> int:
    return rule.scored.filter(state=ScoredRun.State.DONE).count()


def stop_judges(model) -> None:
    """Let the judges fail, and wait until no thread uses the database."""
    model.gate.set()
    wait_until(lambda: not any(t.name == "rule" for t in threading.enumerate()))


@pytest.mark.slow
def test_a_judge_that_waits_holds_up_no_other_rule(model):
    ann = make_user()
    slow = make_judged_rule(ann, model, "slow")
    agent = make_agent(ann)
    quick = make_rule(agent)
    end_run(agent)
    scoring = RuleScoring()

    scoring.take_turn()
    scoring.take_turn()

    wait_until(lambda: model.asked)
    assert (count_scored(slow), count_scored(quick)) == (0, 1)
    assert scoring.take_turn() == IDLE_SECONDS  # the judge still has its rule
    stop_judges(model)


@pytest.mark.slow
def test_rules_without_judges_go_on_while_all_threads_wait(model, monkeypatch):
    monkeypatch.setattr(rule_scoring, "MAX_SLOW_RULES", 1)
    ann = make_user()
    make_judged_rule(ann, model, "first")
    second = make_judged_rule(ann, model, "second")
    agent = make_agent(ann)
    quick = make_rule(agent)
    end_run(agent)
    scoring = RuleScoring()

    for _ in range(3):
        scoring.take_turn()

    assert count_scored(quick) == 1
    second.refresh_from_db()
    assert second.lease_until is None  # nobody has it, so another worker can
    stop_judges(model)


@pytest.mark.slow
def test_a_rule_has_another_turn_when_its_judge_has_answered(model):
    ann = make_user()
    rule = make_judged_rule(ann, model, "judge")
    model.gate.set()  # the server answers with an error at once
    scoring = RuleScoring()

    scoring.take_turn()

    wait_until(lambda: count_scored(rule) == 1)
    stop_judges(model)
    assert rule.scored.get().scores.get().problem
    end_run(rule.agent)
    scoring.take_turn()
    wait_until(lambda: count_scored(rule) == 2)
    stop_judges(model)


@pytest.mark.slow
def test_slow_code_holds_up_no_other_rule():
    ann = make_user()
    code = "def score(example, run):\n    while True:\n        pass\n"
    config = {"code": code, "timeout": 2}
    endless = make_revision(ann, name="Endless", kind="code", config=config).evaluator
    first, second = make_agent(ann), make_agent(ann)
    slow, quick = make_rule(first, evaluators=[endless]), make_rule(second)
    end_run(first)
    end_run(second)
    scoring = RuleScoring()

    scoring.take_turn()
    scoring.take_turn()

    assert (count_scored(slow), count_scored(quick)) == (0, 1)
    wait_until(lambda: count_scored(slow) == 1)
    wait_until(lambda: not any(t.name == "rule" for t in threading.enumerate()))
