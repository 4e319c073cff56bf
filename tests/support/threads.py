"""Threads of tests: each gives its database connection back when it ends."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")


def at_once(*works: Callable[[], object]) -> None:
    """Do all of it side by side; fail with what went wrong in any."""
    barrier, wrong = threading.Barrier(len(works)), list[BaseException]()

    def do(work: Callable[[], object]) -> None:
        try:
            barrier.wait(30)
            work()
        except BaseException as error:  # noqa: BLE001  (the test tells it)
            wrong.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=do, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it in another thread, as a worker would, and return what it gives."""

    def do() -> T:
        try:
            return work(*args, **kwargs)
        finally:
            connection.close()

    return await asyncio.to_thread(do)
