"""Executing a run: drive the engine from the record, then from the world."""

import logging
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, assert_never

from django.db import InterfaceError, OperationalError, connection

from runs.engine.effects import (
    CallModel,
    CallTools,
    Effect,
    ModelAnswered,
    ModelOutOfTime,
    ModelRefused,
    Outcome,
    ToolsAnswered,
)
from runs.engine.executor import execute
from runs.engine.types import Result
from runs.models import AgentStep, Run
from runs.services.ask_model import Asker, Parked
from runs.services.commits import Asked, commit_reply, persist
from runs.services.end_run import end_cancelled, end_failed, end_run, give_up, put_back
from runs.services.held import (
    Cancelled,
    Held,
    LeaseLost,
    ShuttingDown,
    process,
)
from runs.services.move import MOST_RESCUES, claim
from runs.services.provider_of_run import ProviderRefused, open_provider_of
from runs.services.record import Record, read_record
from runs.services.redact import Choke
from runs.services.run_tools import AT_ONCE, ToolRunner

logger = logging.getLogger(__name__)


def execute_run(run_id: int) -> None:
    """Claim a run and do what is left of it; a run that somebody has stays untouched.

    Whatever happens, the run is left in a state from which somebody goes on: over,
    parked, back in the queue, or with a lease that runs out.
    """
    if process.is_stopping.is_set():
        return
    taken = _take(run_id)
    if taken is None:
        return
    run, held = taken
    process.hold(held)
    try:
        _execute(run, held)
    except LeaseLost:
        logger.info("run %s is somebody else's now", run_id)
    finally:
        process.drop(held)
        held.prove()


class Taken(NamedTuple):
    """A claimed run, and what this process knows of it."""

    run: Run
    held: Held


def _take(run_id: int) -> Taken | None:
    """Claim a run; a suspect only where no other one has its turn here."""
    if run := claim(run_id, process.worker):
        return Taken(run, Held(run.pk, run.fence))
    if not process.turn.acquire(blocking=False):
        process.passed_over.add(run_id)
        return None
    held = Held(run_id, fence=0, turn=process.turn)
    try:
        run = claim(run_id, process.worker, takes_suspects=True)
    finally:
        if run is None:
            held.prove()
    return Taken(run, replace(held, fence=run.fence)) if run else None


def _execute(run: Run, held: Held) -> None:
    """Drive `run`; whatever ends it early is written down by the one who holds it."""
    try:
        if run.cancel_requested_at is not None:
            raise Cancelled
        if run.rescues >= MOST_RESCUES:
            give_up(run, held)
            return
        Driver(run, held).drive()
    except Parked:
        pass
    except Cancelled:
        persist(held, lambda: end_cancelled(run, fence=held.fence))
    except ShuttingDown:
        put_back(run, held)
    except LeaseLost:
        raise
    except (OperationalError, InterfaceError) as error:
        logger.warning("run %s goes back, the database is away: %s", run.pk, error)
        connection.close()
        persist(held, lambda: put_back(run, held))
    except Exception:  # the border of a run: our mistake must not take the worker along
        logger.exception("run %s failed by a mistake of ours", run.pk)
        connection.close()
        persist(held, lambda: end_failed(run, held))


class Driver:
    """Drives one run from its record on to its end."""

    def __init__(self, run: Run, held: Held) -> None:
        self.run, self.held = run, held
        self.record: Record = read_record(run)
        self.choke = Choke()
        self.tools = ToolRunner(run, held, self.choke)
        self.number = run.next_number
        self.asker: Asker | None = None
        self.pending: Asked | None = None
        """A reply the engine has seen and the database has not."""

    def drive(self) -> None:
        """Perform what the engine asks for until it ends; then store its result."""
        loop = execute(
            self.record.spec,
            self.run.inputs,
            turns=self.record.turns,
            resumes=self.record.resumes,
        )
        try:
            result = self._loop(loop)
            end_run(self.run, self.held, result, self.pending)
        finally:
            if self.asker is not None:
                self.asker.llm.close()

    def _loop(self, loop: Generator[Effect, Outcome, Result]) -> Result:
        try:
            effect = next(loop)
            while True:
                effect = loop.send(self._perform(effect))
        except StopIteration as end:
            result: Result = end.value
            return result

    def _perform(self, effect: Effect) -> Outcome:
        match effect:
            case CallModel():
                return self._ask(effect)
            case CallTools():
                return self._call(effect)
        assert_never(effect)

    def _ask(self, effect: CallModel) -> Outcome:
        """Answer from the record, or else ask the model."""
        recorded = self.record.take_reply(effect)
        if recorded is not None:
            return recorded[1]
        self._commit_pending()
        self.held.check()
        try:
            asker = self._asker()
        except ProviderRefused as refused:
            return ModelRefused(refused.code, str(refused))
        asked = asker.ask(effect, number=self.number, prices=self.record.spec.prices)
        if isinstance(asked, ModelRefused | ModelOutOfTime):
            return asked
        self.pending = asked
        return ModelAnswered(asked.reply, asked.elapsed)

    def _call(self, effect: CallTools) -> ToolsAnswered:
        """Commit the reply with its steps, then run what is left of them."""
        if self.pending is not None:
            asked, self.pending = self.pending, None
            rows = commit_reply(
                self.held, self.run, asked, effect.steps, at_once=AT_ONCE
            )
            self.number += 1
            self.tools.own |= {r.pk for r in rows if r.status == r.Status.STARTED}
        else:
            rows = self._recorded_steps(effect)
        self.held.check()
        if self.asker is None:  # a resumed run: its secrets are not known yet
            self._know_secrets()
        return self.tools.answer(effect, rows)

    def _know_secrets(self) -> None:
        """Learn what must not be stored; without a provider there is nothing to."""
        with suppress(ProviderRefused):
            self._asker()

    def _recorded_steps(self, effect: CallTools) -> list[AgentStep]:
        return [self.record.steps[step.index] for step in effect.steps]

    def _commit_pending(self) -> None:
        """Store a reply that led to no step: a summary of earlier rounds."""
        if self.pending is not None:
            asked, self.pending = self.pending, None
            commit_reply(self.held, self.run, asked, (), at_once=AT_ONCE)
            self.number += 1

    def _asker(self) -> Asker:
        if self.asker is None:
            opened = open_provider_of(self.run, self.record.spec)
            self.choke = self.tools.choke = Choke(opened.secrets)
            self.asker = Asker(self.run, self.held, opened.llm, self.choke)
        return self.asker
