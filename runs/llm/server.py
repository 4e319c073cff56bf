"""`ModelServer`: exchanges with one model server, and what can go wrong in them."""

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from runs.llm.base import Endpoint
from runs.llm.errors import FailureCode, ModelFailed
from runs.llm.refusals import LATER, refusal, stream_refusal
from runs.llm.wire import CutOff, ErrorSent, NoReply, OnText
from tools.netguard import AddressRefused, AnswerRefused, NetPolicy, open_client
from tools.small_client import SmallAnswer
from tools.sockets import NameNotFound
from tools.watch import Watch

HEADER_LINE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*\r\n")

CALLS = ("/chat/completions", "/responses", "/messages", "/models", "/api/chat")
"""What people leave at the end of a base URL."""


@dataclass(frozen=True)
class Answer:
    """A server's answer with a good status; the body is still arriving."""

    content_type: str
    chunks: Iterator[bytes]

    @property
    def is_stream(self) -> bool:
        """Whether it may be a stream; not every server says so."""
        return not self.content_type.startswith(("application/json", "text/html"))

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.chunks)


class Shown:
    """Hands pieces of text on, and remembers whether there were any."""

    def __init__(self, on_text: OnText | None) -> None:
        self.on_text = on_text
        self.is_any = False

    def __call__(self, text: str) -> None:
        """Hand `text` on."""
        if self.on_text is not None:
            self.is_any = True
            self.on_text(text)


class ModelServer:
    """One server under one address; keeps its connection between calls."""

    def __init__(
        self,
        endpoint: Endpoint,
        policy: NetPolicy,
        *,
        headers: Mapping[str, str],
        root: str = "/v1",
    ) -> None:
        self.endpoint = endpoint
        self._root = root
        self._headers = {
            "accept-encoding": "gzip, deflate",
            "content-type": "application/json",
            "user-agent": "agentsite",
            **headers,
            **{name.lower(): value for name, value in endpoint.headers},
        }
        self._prepared: bytes | None = None
        self._addresses: dict[str, httpx.URL] = {}
        self._client = open_client(policy, timeout=endpoint.timeout)

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    @contextmanager
    def exchange(
        self, path: str, body: bytes | None = None, *, watch: Watch, model: str = ""
    ) -> Iterator[Answer]:
        """Send `body` to `path`, or GET it, and give the answer.

        Raises `ModelFailed` for every refusal and for a connection that breaks, also
        while the answer is read, and `tools.errors.Interrupted`.
        """
        url = self._url(path)
        with (
            self._told(url),
            self._client.exchange(url, self._head(), body, watch=watch) as answer,
        ):
            if answer.status != 200:
                raise self._refused(answer, str(url), model)
            kind = answer.headers.get("content-type", "").lower()
            yield Answer(kind, answer.chunks)

    @contextmanager
    def reply_from(
        self, path: str, body: bytes, *, watch: Watch, model: str, shown: Shown
    ) -> Iterator[Answer]:
        """Like `exchange`, where the answer is read as a reply of `model`."""
        try:
            with self.exchange(path, body, watch=watch, model=model) as answer:
                yield answer
        except (ErrorSent, NoReply, CutOff) as error:
            failure = self._unreadable(error, model)
            failure.shown = shown.is_any
            raise failure from error
        except ModelFailed as failed:
            failed.shown = shown.is_any
            raise

    def _unreadable(self, error: Exception, model: str) -> ModelFailed:
        if isinstance(error, ErrorSent):
            return stream_refusal(self.endpoint, error.error, model=model)
        if isinstance(error, NoReply):
            return self.bad_reply(str(error))
        return self._failed(
            "transport",
            f"The connection to {self.endpoint.base_url} ended in the middle of the"
            f" reply.{LATER}",
        )

    def bad_reply(self, what: str) -> ModelFailed:
        """Return the failure for an answer that is `what` and no reply."""
        return self._not_it(what, "a model's reply")

    def bad_list(self, what: str) -> ModelFailed:
        """Return the failure for an answer that is `what` and no list of models."""
        return self._not_it(what, "its list of models")

    def _not_it(self, what: str, wanted: str) -> ModelFailed:
        return ModelFailed(
            "bad_reply",
            f"The server at {self.endpoint.base_url} sent {what} instead of {wanted}."
            f" Check the base URL of provider {self.endpoint.slug!r}.",
        )

    def _url(self, path: str) -> httpx.URL:
        url = self._addresses.get(path)
        if url is None:
            url = self._addresses[path] = address_of(
                self.endpoint, path, root=self._root
            )
        return url

    def _head(self) -> bytes:
        """Return the header lines, made and checked once."""
        if self._prepared is None:
            lines = [f"{name}: {value}\r\n" for name, value in self._headers.items()]
            if not all(HEADER_LINE.fullmatch(line) for line in lines):
                raise ModelFailed(
                    "auth",
                    f"The key or a header of provider {self.endpoint.slug!r} has"
                    " characters that cannot be sent. Enter it again.",
                )
            self._prepared = "".join(lines).encode("ascii")
        return self._prepared

    def _refused(self, answer: SmallAnswer, address: str, model: str) -> ModelFailed:
        status = answer.status
        if 200 <= status < 300:
            return self.bad_reply(f"an answer with status {status}")
        location = answer.headers.get("location")
        if location and 300 <= status < 400:
            return ModelFailed(
                "not_found",
                f"{address} redirects to {location[:200]!r}."
                f" Enter the right base URL for provider {self.endpoint.slug!r}.",
                status=status,
            )
        return refusal(
            self.endpoint,
            status,
            b"".join(answer.chunks),
            headers=answer.headers,
            model=model,
            address=address,
        )

    @contextmanager
    def _told(self, url: httpx.URL) -> Iterator[None]:
        """Turn what httpx and the guard raise into `ModelFailed`."""
        try:
            yield
        except AddressRefused as error:
            raise ModelFailed("refused_address", str(error)) from error
        except AnswerRefused as error:
            check = f"Check the base URL of provider {self.endpoint.slug!r}."
            raise ModelFailed("bad_reply", f"{error} {check}") from error
        except httpx.ConnectTimeout as error:
            told = (
                f"No server answers at {url}. Start it, or check the base URL of"
                f" provider {self.endpoint.slug!r}."
            )
            raise self._failed("timeout", told) from error
        except httpx.ConnectError as error:
            raise self._unconnected(error, url) from error
        except httpx.TimeoutException as error:
            raise self._failed(
                "timeout",
                f"The server at {self.endpoint.base_url} sent nothing for"
                f" {self.endpoint.timeout:g} s. Resume the run when it works again, or"
                f" give provider {self.endpoint.slug!r} more seconds of silence.",
            ) from error
        except httpx.HTTPError as error:
            raise self._failed(
                "transport",
                f"The connection to {self.endpoint.base_url} broke before the answer"
                f" was complete.{LATER}",
            ) from error

    def _failed(self, code: FailureCode, sentence: str) -> ModelFailed:
        return ModelFailed(code, sentence, may_retry=True)

    def _unconnected(self, error: httpx.ConnectError, url: httpx.URL) -> ModelFailed:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        check = f"Check the base URL of provider {self.endpoint.slug!r}."
        chain = _causes(error)
        if any(isinstance(one, NameNotFound) for one in chain):
            return self._failed("transport", f"No host is named {url.host!r}. {check}")
        if any(isinstance(one, ssl.SSLCertVerificationError) for one in chain):
            return ModelFailed(
                "transport", f"The certificate of {url.host!r} is not valid: {cause}."
            )
        if any(isinstance(one, ssl.SSLError) for one in chain):
            return ModelFailed(
                "transport",
                f"No secure connection to {url.host!r} can be made; a server without"
                f" TLS needs http://. {check}",
            )
        return self._failed(
            "transport",
            f"No server answers at {self.endpoint.base_url}. Start it, or check the"
            f" base URL of provider {self.endpoint.slug!r}.",
        )


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def address_of(endpoint: Endpoint, path: str, *, root: str = "/v1") -> httpx.URL:
    """Return the address of `path` on the endpoint's server.

    A base URL without any path gets `root`; the name of a call at its end is not
    repeated.
    Raises `ModelFailed` if the base URL is no address.
    """
    failure = ModelFailed(
        "bad_request",
        f"{endpoint.base_url!r} is no address of a server; it begins with http:// or"
        f" https://. Correct the base URL of provider {endpoint.slug!r}.",
    )
    try:
        url = httpx.URL(endpoint.base_url.strip())
    except (httpx.InvalidURL, UnicodeError) as error:
        raise failure from error
    if url.scheme not in ("http", "https") or not url.host:
        raise failure
    path, _, query = path.partition("?")
    base = url.path.rstrip("/")
    for known in CALLS:
        base = base.removesuffix(known)
    found = url.copy_with(path=(base or root) + path, fragment=None)
    return found.copy_merge_params(httpx.QueryParams(query)) if query else found
