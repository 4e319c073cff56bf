"""The open sessions of one run: one per server, shared by its calls."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from tools.mcp.errors import ServerGone, SessionExpired
from tools.mcp.http import HttpLink
from tools.mcp.session import Session
from tools.mcp_servers.connect import McpConnection
from tools.net.deadline import Deadline

T = TypeVar("T")


class McpSessions:
    """Opens a session at the first call of a server; for several threads at once."""

    def __init__(self) -> None:
        self._slots: dict[McpConnection, SessionSlot] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> "McpSessions":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def use_session(
        self, connection: McpConnection, deadline: Deadline, act: Callable[[Session], T]
    ) -> T:
        """Return what `act` returns; in a new session if the server ended the old one.

        Raise `ToolFailed` or `Interrupted`.
        """
        with self._lock:
            slot = self._slots.setdefault(connection, SessionSlot())
        with connection.masking_errors():
            session = slot.open_session(connection, deadline)
            try:
                return act(session)
            except SessionExpired:
                slot.drop_session(session)
            return act(slot.open_session(connection, deadline))

    def close(self) -> None:
        """End all sessions; each takes about a second at most."""
        with self._lock:
            slots = list(self._slots.values())
        for slot in slots:
            slot.close()


class SessionSlot:
    """The session with one server, or none yet."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def open_session(self, connection: McpConnection, deadline: Deadline) -> Session:
        """Return the session; a new one if there is none that can be used."""
        with deadline.hold(self._lock):
            if self._session is not None and not self._session.link.is_usable():
                self._drop()
            if self._session is None:
                self._session = self._begin_session(connection, deadline)
            link = self._session.link
            if isinstance(link, HttpLink):
                link.set_credential(connection.secret)
            return self._session

    def drop_session(self, session: Session) -> None:
        """Forget a session, unless another thread already opened the next."""
        with self._lock:
            if self._session is session:
                self._drop()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._session is not None:
                self._session.link.close()
                self._session = None

    def _begin_session(self, connection: McpConnection, deadline: Deadline) -> Session:
        if self._is_closed:
            raise ServerGone(connection.url or "", "the run has ended")
        link = connection.open_link()
        try:
            session = Session(link)
            session.begin(deadline)
            link.listen(deadline)
        except BaseException:
            link.abandon()
            raise
        return session

    def _drop(self) -> None:
        assert self._session is not None  # for the type checker
        self._session.link.abandon()
        self._session = None
