"""Kind `openai`: any server that speaks OpenAI's Chat Completions."""

from functools import partial

from runs.engine.types import ModelRequest, Reply
from runs.llm.base import Endpoint, ModelCard, WireRequest
from runs.llm.chat_completions import (
    REPEATED_CALL_FIELDS,
    REPEATED_FIELDS,
    build_chat_body,
    encode_chat_messages,
    encode_tools,
    parse_chat_reply,
    parse_chat_stream,
)
from runs.llm.errors import ModelCallError
from runs.llm.model_list import fetch_model_list
from runs.llm.optional_fields import OptionalFields
from runs.llm.server import ModelServer, ServerResponse, TextForwarder
from runs.llm.wire import OnText
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy
from tools.net.server_sent_events import parse_server_sent_events
from tools.spec import ToolSpec

PATH = "/chat/completions"
MESSAGE_FIELDS = frozenset((*REPEATED_FIELDS, *REPEATED_CALL_FIELDS))


class OpenAI:
    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        key = endpoint.key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._server = ModelServer(endpoint, policy, headers=headers)
        self._fields = OptionalFields(
            "stream_options", "stop", "response_format", *sorted(MESSAGE_FIELDS)
        )
        self._tools: tuple[ToolSpec, ...] = ()
        self._tool_bytes = b"[]"

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        on_text: OnText | None = None,
    ) -> Reply:
        shown = TextForwarder(on_text if request.settings.stream else None)

        def send(body: bytes) -> Reply:
            model = request.settings.model
            with self._server.exchange_reply(
                PATH, body, deadline=deadline, model=model, shown=shown
            ) as answer:
                return self._reply(answer, shown)

        build = partial(self._build_body, request, stream=shown.on_text is not None)
        return self._fields.call_without_refused(build, send)

    def build_wire_request(self, request: ModelRequest) -> WireRequest:
        stream, unwanted = request.settings.stream, self._fields.unsupported
        body = self._build_body(request, unwanted, stream=stream)
        return self._server.describe_request(PATH, body)

    def _build_body(
        self, request: ModelRequest, unwanted: frozenset[str], *, stream: bool
    ) -> bytes:
        return build_chat_body(
            request,
            stream=stream,
            tools=self._encode_tools(request.tools),
            messages=encode_chat_messages(request.messages, unwanted),
            unwanted=unwanted - MESSAGE_FIELDS,
        )

    def list_models(self, *, deadline: Deadline) -> list[ModelCard]:
        """Return the models that the server lists, by name."""
        return fetch_model_list(self._server, deadline=deadline)

    def close(self) -> None:
        self._server.close()

    def _reply(self, answer: ServerResponse, shown: TextForwarder) -> Reply:
        if shown.on_text is not None and answer.is_stream:
            return raise_if_filtered(
                parse_chat_stream(parse_server_sent_events(answer.chunks), shown)
            )
        reply = raise_if_filtered(parse_chat_reply(answer.read()))
        if reply.text:
            shown(reply.text)
        return reply

    def _encode_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools is not self._tools:  # a run passes the same tuple each time
            self._tools, self._tool_bytes = tools, encode_tools(tools)
        return self._tool_bytes


def raise_if_filtered(reply: Reply) -> Reply:
    """Return `reply`, or raise if a content filter removed all of it."""
    if reply.finish_reason == "content_filter" and not (reply.text or reply.tool_calls):
        raise ModelCallError(
            "content_filter", "The provider's content filter withheld the reply."
        )
    return reply
