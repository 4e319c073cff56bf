"""The threads of a worker: as many as its runs need, and no more for long."""

import resource
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from celery.concurrency.base import apply_target
from celery.concurrency.thread import ApplyResult, TaskPool
from django.db import connections
from kombu.asynchronous import get_event_loop

IDLE_SECONDS = 30.0
"""Seconds without work after which a thread ends."""
FILES_PER_RUN, OTHER_FILES = 4, 512
"""Open files of a run that waits for a model, and of everything else."""

Job = Callable[[], None]


class IdleThread:
    """A thread without work, and how it gets the next."""

    def __init__(self) -> None:
        self.jobs = SimpleQueue[Job | None]()


class ElasticThreads:
    """Starts a thread if none is idle; a thread that stays idle ends.

    The thread that became idle last gets the next job, so that the others can end.
    How many jobs there are at once is decided by whoever submits them.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self.idle_seconds = idle_seconds
        self.lock = threading.Lock()
        self.idle = deque[IdleThread]()
        self.threads = set[threading.Thread]()

    def submit(self, function: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        future = Future[Any]()
        job = partial(_settle, future, function, args)
        with self.lock:
            if self.idle:
                self.idle.pop().jobs.put(job)
                return future
            thread = threading.Thread(target=self._work, args=(job,), daemon=True)
            self.threads.add(thread)
        thread.start()
        return future

    def shutdown(self) -> None:
        """Wait until every job is done; accept no more."""
        with self.lock:
            idle, threads = list(self.idle), list(self.threads)
            self.idle.clear()
            self.idle_seconds = 0.0
        for one in idle:
            one.jobs.put(None)
        for thread in threads:
            thread.join()

    def _work(self, job: Job | None) -> None:
        me = IdleThread()
        while job is not None:
            job()
            del job  # what it refers to may be large
            job = self._wait_for_job(me)
        connections.close_all()
        with self.lock:
            self.threads.discard(threading.current_thread())

    def _wait_for_job(self, me: IdleThread) -> Job | None:
        """Return the next job; None if there was none for long."""
        with self.lock:
            if not self.idle_seconds:
                return None
            self.idle.append(me)
        try:
            return me.jobs.get(timeout=self.idle_seconds)
        except Empty:
            with self.lock:
                if me in self.idle:
                    self.idle.remove(me)
                    return None
            return me.jobs.get()  # it was given one at this very moment


def _settle(
    future: "Future[Any]", function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    try:
        future.set_result(function(*args))
    except BaseException as error:  # noqa: BLE001  (for whoever waits for the result)
        future.set_exception(error)


class ThreadPool(TaskPool):  # type: ignore[misc]  # Celery has no types
    """Celery's pool on threads that come and go.

    It notifies the consumer of a free thread, which otherwise polls once per second.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.executor = ElasticThreads()
        self.find_capacity: Callable[[], int] = lambda: self.limit
        """How many tasks may run now; set when the worker has registered."""

    def on_start(self) -> None:
        raise_file_limit(self.limit)

    def on_stop(self) -> None:
        self.executor.shutdown()

    def on_apply(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        callback: Callable[..., Any] | None = None,
        accept_callback: Callable[..., Any] | None = None,
        **_: Any,
    ) -> ApplyResult:
        future = self.executor.submit(
            apply_target, target, args, kwargs, callback, accept_callback
        )
        future.add_done_callback(lambda _: wake_consumer())
        return ApplyResult(future)

    @property
    def num_processes(self) -> int:
        """How many tasks the consumer may take; it asks before each one."""
        return self.find_capacity()

    def _get_info(self) -> dict[str, Any]:
        return {"max-concurrency": self.limit, "threads": len(self.executor.threads)}


def wake_consumer() -> None:
    """Let the consumer look whether it may take another message."""
    if (loop := get_event_loop()) is not None:
        loop.call_soon(_do_nothing)  # type: ignore[no-untyped-call]  # Kombu has no types


def _do_nothing() -> None:
    """The event loop was woken, which is all that was wanted."""


def raise_file_limit(runs: int) -> None:
    """Allow the files of so many waiting runs, as far as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = runs * FILES_PER_RUN + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
