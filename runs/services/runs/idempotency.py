"""Start a run once, however often a client asks under one key."""

from collections.abc import Callable
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.models import IdempotencyKey, Run
from runs.services.errors import RunsError


class AnotherBody(RunsError):
    """The key was used for a different request."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The key {key!r} was used for a request with another body. "
            "Use a new key for a new run."
        )


class Started(NamedTuple):
    """The run, and whether this call started it."""

    run: Run
    is_new: bool


def start_once(
    start: Callable[[], Run], *, user: User, key: str | None, body_digest: str
) -> Started:
    """Call `start` unless `user` has used `key`; raise `AnotherBody`.

    Of two calls at the same time the second one's run is rolled back with its bell:
    the key's row decides, in the transaction that makes the run.
    """
    if key is None:
        return Started(start(), True)
    if (found := earlier_run(user, key, body_digest)) is not None:
        return Started(found, False)
    try:
        with transaction.atomic():
            run = start()
            IdempotencyKey.objects.create(
                user=user, key=key, body_digest=body_digest, run=run
            )
    except IntegrityError:
        found = earlier_run(user, key, body_digest)
        if found is None:
            raise
        return Started(found, False)
    return Started(run, True)


def earlier_run(user: User, key: str, body_digest: str) -> Run | None:
    """Return the run started under `key`; raise `AnotherBody`."""
    keys = IdempotencyKey.objects.filter(user=user, key=key)
    row = keys.select_related("run__agent", "run__version").first()
    if row is None:
        return None
    if row.body_digest != body_digest:
        raise AnotherBody(key)
    return row.run
