"""Somebody who answers every question, and stops some runs."""

import random
import threading
import time
from contextlib import suppress

from django.contrib.auth.models import User
from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from runs.models import Decision, Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.approvals.answer import approve_step, reject_step, settle_outcome
from runs.services.errors import RunsError
from runs.services.runs.cancel import cancel_run


class Person(threading.Thread):
    """Answers within a moment, by a die."""

    def __init__(self, user: User, *, seed: int) -> None:
        super().__init__(name="person", daemon=True)
        self._user, self._dice = user, random.Random(f"person:{seed}")
        self._stopped: set[int] = set()
        self.is_done = threading.Event()

    def run(self) -> None:
        """Look again and again, whatever happens to the database."""
        while not self.is_done.wait(0.2):
            with suppress(DatabaseError):
                close_old_connections()
                self._answer()
                self._stop_some()
        connection.close()

    def _answer(self) -> None:
        questions = Decision.objects.filter(answer="").select_related("step__run")
        for decision in questions[:50]:
            with suppress(RunsError):
                if decision.question == Decision.Question.APPROVAL:
                    self._approve(decision)
                else:
                    answer = self._dice.choice(["happened", "retry", "skip"])
                    settle_outcome(decision, by=self._user, answer=answer, result="ok")

    def _approve(self, decision: Decision) -> None:
        if self._dice.random() < 0.85:
            approve_step(decision, by=self._user)
        else:
            reject_step(decision, by=self._user, reason="Not this one.")

    def _stop_some(self) -> None:
        """Stop every twenty-fifth run, at whatever moment it is met."""
        found = Run.objects.filter(status__in=UNFINISHED_STATUSES).exclude(
            pk__in=self._stopped
        )
        for run in found[:100]:
            if run.pk % 25 == 0 and self._dice.random() < 0.1:
                self._stopped.add(run.pk)
                cancel_run(run, by=self._user)
        time.sleep(0)
