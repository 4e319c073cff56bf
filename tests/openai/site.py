"""A web server, a model and a worker for clients that call agents."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.utils import timezone

from runs.models import Run
from runs.store.claims import worker_state
from runs.worker.execute_run import execute_run
from runs.worker.heartbeat import check_claims
from tests.fakes.model_server import FakeServer, Recorded, model_server
from tests.support.timing import wait_until
from tests.worker.run_parts import call


def reply_by_question(request: Recorded) -> Any:
    """Return the reply to the newest message: each word asks for something else."""
    messages = request.body["messages"]
    asked = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    has_result = messages[-1]["role"] == "tool"
    if "fail" in asked:
        return {"fault": "400"}
    if "slow" in asked:
        return {"content": "One moment, " * 1000, "pause": 0.05}  # 100 s
    if "mail" in asked and not has_result:
        return {"content": "I write to Ann.", **call("send_mail", to="ann@example.com")}
    if "sum" in asked and not has_result:
        return {"reasoning": "Adding is easy.", **call("add", a=2, b=3)}
    if has_result:
        return f"Result: {messages[-1]['content']}."
    return f"You said: {asked}"


@contextmanager
def answering_model() -> Iterator[FakeServer]:
    """Serve a model that answers by the question."""
    with model_server(script=reply_by_question) as server:
        yield server


@contextmanager
def working() -> Iterator[None]:
    """Execute queued runs in threads of this process, as a worker does."""
    stop, busy = threading.Event(), set[int]()

    def execute(pk: int) -> None:
        try:
            execute_run(pk)
        finally:
            busy.discard(pk)
            connection.close()

    def look(pool: ThreadPoolExecutor) -> None:
        try:
            while not stop.wait(0.05):
                queued = Run.objects.filter(status=Run.Status.QUEUED)
                for pk in set(queued.values_list("pk", flat=True)) - busy:
                    busy.add(pk)
                    pool.submit(execute, pk)
                check_claims(worker_state)  # as its heartbeat does
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        watcher = threading.Thread(target=look, args=(pool,))
        watcher.start()
        try:
            yield
        finally:
            running = Run.objects.filter(status=Run.Status.RUNNING)
            running.update(cancel_requested_at=timezone.now())  # nobody waits for them
            wait_until(lambda: not busy)
            stop.set()
            watcher.join()
