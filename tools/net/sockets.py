"""Guarded sockets: they connect to checked addresses, and never wait in one piece."""

import errno
import functools
import math
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import certifi
import httpcore

from tools.net.addresses import Address, parse_ip_address
from tools.net.deadline import Deadline
from tools.net.netpolicy import AddressRefused, NetPolicy

CONNECT_SECONDS = 10.0
"""Seconds for connecting, if nobody says less."""

Resolver = Callable[[str, int], list[str]]
"""Return the addresses of a host name, as text; raise `OSError` if there are none."""

T = TypeVar("T")


def shared_ssl_context() -> ssl.SSLContext:
    """Return the one TLS context: the system's authorities, and certifi's.

    Making it takes 30 ms, so threads that start together wait for one of them.
    """
    with _context_lock:
        return _build_ssl_context()


_context_lock = threading.Lock()


@functools.cache
def _build_ssl_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def resolve_by_system(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class GuardedBackend(httpcore.NetworkBackend):
    """Opens connections to allowed addresses, and looks at the watch while waiting."""

    def __init__(
        self, policy: NetPolicy, deadline: Deadline, resolve: Resolver
    ) -> None:
        self.policy = policy
        self.deadline = deadline
        self.patience: float | None = None
        """Seconds a read may wait, if that is less than its timeout."""
        self._resolve = resolve

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve `host` once, check all its addresses, and connect to one of them."""
        name = host.lower().rstrip(".")
        self.policy.check_host(name)
        until = time.monotonic() + (CONNECT_SECONDS if timeout is None else timeout)
        addresses = self._addresses(name, port, until)
        for address in addresses:
            self.policy.check_address(name, address, port)
        failure: Exception = httpcore.ConnectError(f"{host!r} has no address")
        for position, address in enumerate(addresses):
            share = (until - time.monotonic()) / (len(addresses) - position)
            try:
                sock = self._connect(address, port, time.monotonic() + share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return GuardedStream(sock, self)
        raise failure

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Refuse: no policy speaks of sockets in the file system."""
        raise AddressRefused(path, "it is a socket of this machine")

    def _addresses(self, host: str, port: int, until: float) -> list[Address]:
        literal = parse_ip_address(host)
        if literal is not None:
            return [literal]
        # A hanging name server must not outlive the watch: ask it in a thread.
        answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()
        threading.Thread(
            target=_run_resolver, args=(self._resolve, host, port, answers), daemon=True
        ).start()
        while True:
            try:
                answer = answers.get(
                    timeout=self.next_wait(until, httpcore.ConnectTimeout)
                )
            except queue.Empty:
                continue
            if isinstance(answer, Exception):
                raise httpcore.ConnectError(str(answer)) from NameNotFound(host)
            found = [parse_ip_address(one) for one in answer]
            return [one for one in found if one is not None]

    def _connect(self, address: Address, port: int, until: float) -> socket.socket:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(error) from error
        try:
            sock.setblocking(False)
            code = sock.connect_ex((str(address), port))
            while code in (errno.EINPROGRESS, errno.EALREADY, errno.EINTR):
                poll = select.poll()
                poll.register(sock, select.POLLOUT)
                if poll.poll(1000 * self.next_wait(until, httpcore.ConnectTimeout)):
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    break
            if code:
                raise OSError(code, f"{errno.errorcode.get(code, code)}")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            raise httpcore.ConnectError(error) from error
        except BaseException:
            sock.close()
            raise
        return sock

    def next_wait(self, until: float, too_late: type[Exception]) -> float:
        """Return how long to block now; raise when watch or time say it is enough."""
        self.deadline.check()
        rest = until - time.monotonic()
        if rest <= 0:
            raise too_late("nothing came in time")
        return max(self.deadline.next_wait(min(rest, 0.5)), 0.001)


class NameNotFound(OSError):
    """No address is known for a host name."""

    def __init__(self, host: str) -> None:
        super().__init__(f"no address is known for {host!r}")


def _run_resolver(
    resolve: Resolver,
    host: str,
    port: int,
    answers: "queue.SimpleQueue[list[str] | Exception]",
) -> None:
    try:
        answers.put(resolve(host, port))
    except (OSError, UnicodeError, ValueError) as error:
        answers.put(error)


class GuardedStream(httpcore.NetworkStream):
    """A connected socket, plain or TLS, that waits in slices."""

    def __init__(self, sock: socket.socket, guard: GuardedBackend) -> None:
        self._sock = sock
        self._guard = guard
        self._slice = -1.0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come, at most `max_bytes`; empty at the end."""
        try:
            return self._wait(
                lambda: self._sock.recv(max_bytes), timeout, httpcore.ReadTimeout
            )
        except OSError as error:
            raise httpcore.ReadError(error) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of `buffer`."""
        rest = memoryview(buffer)
        try:
            while rest:
                sent = self._wait(
                    partial(self._sock.send, rest), timeout, httpcore.WriteTimeout
                )
                rest = rest[sent:]
        except OSError as error:
            raise httpcore.WriteError(error) from error

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Return the stream after the TLS handshake for `server_hostname`."""
        try:
            # Its closing is ours from here on: wrapping detaches the plain socket.
            self._sock = sock = ssl_context.wrap_socket(
                self._sock,
                server_hostname=server_hostname,
                do_handshake_on_connect=False,
            )
            secure = GuardedStream(sock, self._guard)
            secure._wait(sock.do_handshake, timeout, httpcore.ConnectTimeout)
        except OSError as error:
            self.close()
            raise httpcore.ConnectError(error) from error
        except BaseException:
            self.close()
            raise
        return secure

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return bool(poll.poll(0))
        if info == "ssl_object":
            return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
        return self._sock.getpeername() if info == "server_addr" else None

    def _wait(
        self, act: Callable[[], T], timeout: float | None, too_late: type[Exception]
    ) -> T:
        """Return what `act` returns, trying again until watch or `timeout` end it."""
        patience = self._guard.patience
        if patience is not None:
            timeout = patience if timeout is None else min(timeout, patience)
        until = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            seconds = self._guard.next_wait(until, too_late)
            if seconds != self._slice:  # a system call saved where nothing changes
                self._sock.settimeout(seconds)
                self._slice = seconds
            try:
                return act()
            except (TimeoutError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
