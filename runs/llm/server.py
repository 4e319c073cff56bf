"""`ModelServer`: exchanges with one model server, and their errors."""

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from runs.llm.base import Endpoint, WireRequest
from runs.llm.errors import FailureCode, ModelCallError
from runs.llm.refusals import parse_refusal, parse_stream_refusal
from runs.llm.wire import ErrorResponse, NotAReply, OnText, StreamCutOff
from tools.net.deadline import Deadline
from tools.net.keepalive_client import StreamedResponse
from tools.net.netguard import AddressRefused, NetPolicy, ResponseRefused, open_client
from tools.net.reserved_headers import is_reserved_header
from tools.net.sockets import NameNotFound
from tools.net.web_address import parse_web_url
from tools.text.translatable import translatable

HEADER_LINE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*\r\n")

CALL_PATHS = ("/chat/completions", "/responses", "/messages", "/models", "/api/chat")
"""Paths that people leave at the end of a base URL."""


@dataclass(frozen=True)
class ServerResponse:
    """A response with a good status; the body is still arriving."""

    content_type: str
    chunks: Iterator[bytes]

    @property
    def is_stream(self) -> bool:
        """Whether it may be a stream; not every server declares it."""
        return not self.content_type.startswith(("application/json", "text/html"))

    def read(self) -> bytes:
        return b"".join(self.chunks)


class TextForwarder:
    """Passes pieces of text on, and remembers whether there were any."""

    def __init__(self, on_text: OnText | None) -> None:
        self.on_text = on_text
        self.has_forwarded = False

    def __call__(self, text: str) -> None:
        if self.on_text is not None:
            self.has_forwarded = True
            self.on_text(text)


class ModelServer:
    """One server at one address; keeps its connection between calls."""

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
        self._header_bytes: bytes | None = None
        self._addresses: dict[str, httpx.URL] = {}
        self._client = open_client(policy, timeout=endpoint.timeout)

    def close(self) -> None:
        self._client.close()

    def describe_request(self, path: str, body: bytes) -> WireRequest:
        self._get_header_bytes()
        return WireRequest(str(self._url(path)), self._headers, body)

    @contextmanager
    def exchange(
        self,
        path: str,
        body: bytes | None = None,
        *,
        deadline: Deadline,
        model: str = "",
    ) -> Iterator[ServerResponse]:
        """Send `body` to `path`, or GET it, and yield the response.

        Raise `ModelCallError` for error responses and broken connections, also while
        the response is read, and `tools.errors.Interrupted`.
        """
        url = self._url(path)
        with (
            self._translate_errors(url),
            self._client.exchange(
                url, self._get_header_bytes(), body, deadline=deadline
            ) as answer,
        ):
            if answer.status != 200:
                raise self._parse_refusal(answer, str(url), model)
            kind = answer.headers.get("content-type", "").lower()
            yield ServerResponse(kind, answer.chunks)

    @contextmanager
    def exchange_reply(
        self,
        path: str,
        body: bytes,
        *,
        deadline: Deadline,
        model: str,
        shown: TextForwarder,
    ) -> Iterator[ServerResponse]:
        """Like `exchange`, for a response that is parsed as a reply of `model`."""
        try:
            with self.exchange(path, body, deadline=deadline, model=model) as answer:
                yield answer
        except (ErrorResponse, NotAReply, StreamCutOff) as error:
            failure = self._build_reply_error(error, model)
            failure.has_streamed = shown.has_forwarded
            raise failure from error
        except ModelCallError as failed:
            failed.has_streamed = shown.has_forwarded
            raise

    def _build_reply_error(self, error: Exception, model: str) -> ModelCallError:
        if isinstance(error, ErrorResponse):
            return parse_stream_refusal(self.endpoint, error.error, model=model)
        if isinstance(error, NotAReply):
            return self.build_bad_reply_error(str(error))
        return self._build_retryable_error(
            "transport",
            translatable(
                "The connection to %(server)s ended in the middle of the reply.",
                server=self.endpoint.base_url,
            ),
        )

    def build_bad_reply_error(self, what: str) -> ModelCallError:
        """Return the error for `what` in place of a reply.

        It is worth a retry: gateways send error pages with status 200.
        """
        return self._build_wrong_answer(what, "a model's reply")

    def build_bad_list_error(self, what: str) -> ModelCallError:
        return self._build_wrong_answer(what, "its list of models")

    def _build_wrong_answer(self, what: str, wanted: str) -> ModelCallError:
        return self._build_retryable_error(
            "bad_reply",
            f"The server at {self.endpoint.base_url} sent {what} instead of {wanted}."
            f" Check the base URL of provider {self.endpoint.slug!r}, or resume the run"
            " when the server works again.",
        )

    def _url(self, path: str) -> httpx.URL:
        url = self._addresses.get(path)
        if url is None:
            url = self._addresses[path] = build_endpoint_url(
                self.endpoint, path, root=self._root
            )
        return url

    def _get_header_bytes(self) -> bytes:
        """Return the header lines, built and checked once."""
        if self._header_bytes is None:
            for name in filter(is_reserved_header, self._headers):
                raise ModelCallError(
                    "bad_request",
                    f"Provider {self.endpoint.slug!r} sets the header {name!r}, which"
                    " belongs to the connection. Remove it from its extra headers.",
                )
            lines = [f"{name}: {value}\r\n" for name, value in self._headers.items()]
            if not all(HEADER_LINE.fullmatch(line) for line in lines):
                raise ModelCallError(
                    "auth",
                    f"The key or a header of provider {self.endpoint.slug!r} has"
                    " characters that cannot be sent. Enter it again.",
                )
            self._header_bytes = "".join(lines).encode("ascii")
        return self._header_bytes

    def _parse_refusal(
        self, answer: StreamedResponse, address: str, model: str
    ) -> ModelCallError:
        status = answer.status
        if 200 <= status < 300:
            return self.build_bad_reply_error(f"an answer with status {status}")
        location = answer.headers.get("location")
        if location and 300 <= status < 400:
            return ModelCallError(
                "not_found",
                f"{address} redirects to {location[:200]!r}."
                f" Enter the correct base URL of provider {self.endpoint.slug!r}.",
                status=status,
            )
        return parse_refusal(
            self.endpoint,
            status,
            b"".join(answer.chunks),
            headers=answer.headers,
            model=model,
            address=address,
        )

    @contextmanager
    def _translate_errors(self, url: httpx.URL) -> Iterator[None]:
        """Turn errors of httpx and the network guard into `ModelCallError`."""
        try:
            yield
        except AddressRefused as error:
            raise ModelCallError("refused_address", str(error)) from error
        except ResponseRefused as error:
            check = f"Check the base URL of provider {self.endpoint.slug!r}."
            raise ModelCallError("bad_reply", f"{error} {check}") from error
        except httpx.ConnectTimeout as error:
            message = translatable(
                "No server answers at %(server)s. Start it, or check the base URL of "
                "provider %(provider)s.",
                server=url,
                provider=repr(self.endpoint.slug),
            )
            raise self._build_retryable_error("timeout", message) from error
        except httpx.ConnectError as error:
            raise self._build_connect_error(error, url) from error
        except httpx.TimeoutException as error:
            raise self._build_retryable_error(
                "timeout",
                translatable(
                    "The server at %(server)s sent nothing for %(seconds)s s. "
                    "If it needs longer, give provider %(provider)s a longer "
                    "idle timeout.",
                    server=self.endpoint.base_url,
                    seconds=f"{self.endpoint.timeout:g}",
                    provider=repr(self.endpoint.slug),
                ),
            ) from error
        except httpx.HTTPError as error:
            raise self._build_retryable_error(
                "transport",
                translatable(
                    "The connection to %(server)s broke before the answer was "
                    "complete.",
                    server=self.endpoint.base_url,
                ),
            ) from error

    def _build_retryable_error(
        self, code: FailureCode, sentence: str
    ) -> ModelCallError:
        return ModelCallError(code, sentence, may_retry=True)

    def _build_connect_error(
        self, error: httpx.ConnectError, url: httpx.URL
    ) -> ModelCallError:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        check = f"Check the base URL of provider {self.endpoint.slug!r}."
        chain = _cause_chain(error)
        if any(isinstance(one, NameNotFound) for one in chain):
            return self._build_retryable_error(
                "transport", f"Host {url.host!r} not found. {check}"
            )
        if any(isinstance(one, ssl.SSLCertVerificationError) for one in chain):
            return ModelCallError(
                "transport", f"The certificate of {url.host!r} is not valid: {cause}."
            )
        if any(isinstance(one, ssl.SSLError) for one in chain):
            return ModelCallError(
                "transport",
                f"No secure connection to {url.host!r} can be made; a server without"
                f" TLS needs http://. {check}",
            )
        return self._build_retryable_error(
            "transport",
            translatable(
                "No server answers at %(server)s. Start it, or check the base URL of "
                "provider %(provider)s.",
                server=self.endpoint.base_url,
                provider=repr(self.endpoint.slug),
            ),
        )


def _cause_chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def build_endpoint_url(
    endpoint: Endpoint, path: str, *, root: str = "/v1"
) -> httpx.URL:
    """Return the URL of `path` on the endpoint's server.

    A base URL without a path gets `root`; a call path at its end is not repeated. Raise
    `ModelCallError` if the base URL is invalid.
    """
    failure = ModelCallError(
        "bad_request",
        f"{endpoint.base_url!r} is not a server address: it must begin with http://"
        f" or https://. Correct the base URL of provider {endpoint.slug!r}.",
    )
    try:
        url = parse_web_url(endpoint.base_url.strip())
    except httpx.InvalidURL as error:
        raise failure from error
    if url.scheme not in ("http", "https") or not url.host:
        raise failure
    path, _, query = path.partition("?")
    base = url.path.rstrip("/")
    for known in CALL_PATHS:
        base = base.removesuffix(known)
    found = url.copy_with(path=(base or root) + path, fragment=None)
    return found.copy_merge_params(httpx.QueryParams(query)) if query else found
