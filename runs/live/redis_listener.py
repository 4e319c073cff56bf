"""The async reading side of the two Redis streams."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from runs.redis_streams import MAX_TEXT_DELTAS, NOTICES, TEXT_DELTAS, Notice, TextDelta

BLOCK_MS = 2_000
MAX_ENTRIES = 1_000
RETRY_SECONDS = 1.0

logger = logging.getLogger(__name__)


class RedisListener:
    """Hands each notice and draft to its callback; waits while Redis is away.

    It reads only while somebody watches: a busy worker sends hundreds of notices a
    second, and each reading costs the web process more than answering a request.
    """

    def __init__(
        self,
        *,
        on_notice: Callable[[Notice], None],
        on_draft: Callable[[TextDelta], None],
    ) -> None:
        self._on_notice, self._on_draft = on_notice, on_draft
        self._client: Any = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            decode_responses=True,
            encoding_errors="replace",
            socket_connect_timeout=1,
            socket_timeout=BLOCK_MS / 1000 + 3,
        )
        self._last: dict[str, str] = {}
        self._was_unreachable = False
        self._is_listening = asyncio.Event()
        self._is_wanted = asyncio.Event()

    def resume(self) -> None:
        """Read, from what comes next on: somebody watches."""
        self._is_wanted.set()

    def pause(self) -> None:
        """Read no more, at the latest after `BLOCK_MS`: nobody watches."""
        self._is_wanted.clear()

    async def listen(self) -> None:
        """Wait once for entries, and hand them over."""
        if not self._is_wanted.is_set():
            self._is_listening.clear()
            self._last = {}
            await self._is_wanted.wait()
        try:
            if not self._last:
                self._last = {
                    key: await self._newest(key) for key in (NOTICES, TEXT_DELTAS)
                }
                self._is_listening.set()
            found = await self._client.xread(
                self._last, count=MAX_ENTRIES, block=BLOCK_MS
            )
        except (RedisError, OSError) as error:
            if not self._was_unreachable:
                logger.warning("Live pages do without Redis: %s", error)
            self._was_unreachable = True
            self._last = {}
            await asyncio.sleep(RETRY_SECONDS)
            return
        self._was_unreachable = False
        for key, entries in found or ():
            self._last[key] = entries[-1][0]
            for _, fields in entries:
                self._dispatch(key, fields)

    async def recent_drafts(self, run_id: int) -> list[TextDelta]:
        """Return the pieces of a run that Redis still has; none if it is away.

        Later ones are not missed, since this waits until somebody listens.
        """
        await self._is_listening.wait()
        try:
            entries = await self._client.xrange(TEXT_DELTAS, count=MAX_TEXT_DELTAS * 2)
        except (RedisError, OSError):
            return []
        wanted = str(run_id)
        pieces = (fields for _, fields in entries if fields.get("run") == wanted)
        return [piece for fields in pieces if (piece := parse_draft(fields))]

    async def close(self) -> None:
        await self._client.aclose()

    async def _newest(self, key: str) -> str:
        entries = await self._client.xrevrange(key, count=1)
        return entries[0][0] if entries else "0-0"

    def _dispatch(self, key: str, fields: Mapping[str, str]) -> None:
        if key == TEXT_DELTAS:
            if piece := parse_draft(fields):
                self._on_draft(piece)
            return
        try:
            notice = Notice.from_fields(dict(fields))
        except (KeyError, ValueError):
            return
        self._on_notice(notice)


def parse_draft(fields: Mapping[str, str]) -> TextDelta | None:
    """Return the piece; None if somebody else wrote the entry."""
    try:
        return TextDelta.from_fields(dict(fields))
    except (KeyError, ValueError):
        return None
