"""Start a run once, however often a client repeats a request with one key."""

from collections.abc import Callable
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.models import IdempotencyKey, Run
from runs.services.errors import RunsError


class IdempotencyKeyReused(RunsError):
    """The key was used for a different request."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The key {key!r} was already used for a request with another body. "
            "Use a new key for a new run."
        )


class StartResult(NamedTuple):
    """The run, and whether this call started it."""

    run: Run
    is_new: bool


def start_run_once(
    start: Callable[[], Run], *, user: User, key: str | None, body_digest: str
) -> StartResult:
    """Call `start` unless `user` has used `key`; raise `IdempotencyKeyReused`.

    Of two concurrent calls the second one's run is rolled back: the unique row of
    the key, in the transaction that creates the run, decides.
    """
    if key is None:
        return StartResult(start(), True)
    if (found := find_run_by_key(user, key, body_digest)) is not None:
        return StartResult(found, False)
    try:
        with transaction.atomic():
            run = start()
            IdempotencyKey.objects.create(
                user=user, key=key, body_digest=body_digest, run=run
            )
    except IntegrityError:
        found = find_run_by_key(user, key, body_digest)
        if found is None:
            raise
        return StartResult(found, False)
    return StartResult(run, True)


def find_run_by_key(user: User, key: str, body_digest: str) -> Run | None:
    """Return the run started under `key`; raise `IdempotencyKeyReused`."""
    keys = IdempotencyKey.objects.filter(user=user, key=key)
    row = keys.select_related("run__agent", "run__version").first()
    if row is None:
        return None
    if row.body_digest != body_digest or row.run is None:
        raise IdempotencyKeyReused(key)
    return row.run
