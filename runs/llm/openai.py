"""Kind `openai`: any server that speaks OpenAI's Chat Completions."""

from collections.abc import Callable

from runs.engine.types import Message, ModelRequest, Reply
from runs.llm.base import Endpoint, ModelCard
from runs.llm.chat import body_of, read_reply, read_stream, tool_bytes
from runs.llm.errors import ModelFailed
from runs.llm.model_list import listed_models
from runs.llm.optional_fields import OptionalFields
from runs.llm.server import Answer, ModelServer, Shown
from runs.llm.wire import OnText, read_events
from tools.netguard import NetPolicy
from tools.spec import ToolSpec
from tools.watch import Watch


def as_it_is(message: Message) -> bytes:
    """Return the bytes of a message that were made for the digest already."""
    return message.canonical


class OpenAI:
    """A Chat Completions server; `write` turns a message into what it wants to see."""

    def __init__(
        self,
        endpoint: Endpoint,
        policy: NetPolicy,
        *,
        write: Callable[[Message], bytes] = as_it_is,
    ) -> None:
        key = endpoint.key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._server = ModelServer(endpoint, policy, headers=headers)
        self._write = write
        self._fields = OptionalFields("stream_options", "stop", "response_format")
        self._tools: tuple[ToolSpec, ...] = ()
        self._tool_bytes = b"[]"

    def ask(
        self, request: ModelRequest, *, watch: Watch, on_text: OnText | None = None
    ) -> Reply:
        """Return the model's reply; see `LLM.ask`."""
        shown = Shown(on_text if request.settings.stream else None)

        def ask_once(unwanted: frozenset[str]) -> Reply:
            body = body_of(
                request,
                stream=shown.on_text is not None,
                tools=self._bytes_of(request.tools),
                messages=map(self._write, request.messages),
                unwanted=unwanted,
            )
            model = request.settings.model
            with self._server.reply_from(
                "/chat/completions", body, watch=watch, model=model, shown=shown
            ) as answer:
                return self._reply(answer, shown)

        return self._fields.tried(ask_once)

    def list_models(self, *, watch: Watch) -> list[ModelCard]:
        """Return the models the server names, by name."""
        return listed_models(self._server, watch=watch)

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()

    def _reply(self, answer: Answer, shown: Shown) -> Reply:
        if shown.on_text is not None and answer.is_stream:
            return refused_if_filtered(read_stream(read_events(answer.chunks), shown))
        reply = refused_if_filtered(read_reply(answer.read()))
        if reply.text:
            shown(reply.text)
        return reply

    def _bytes_of(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools is not self._tools:  # a run passes the same tuple each time
            self._tools, self._tool_bytes = tools, tool_bytes(tools)
        return self._tool_bytes


def refused_if_filtered(reply: Reply) -> Reply:
    """Return `reply`, or raise if a filter took all of it away."""
    if reply.finish_reason == "content_filter" and not (reply.text or reply.tool_calls):
        raise ModelFailed(
            "content_filter", "The provider's content filter withheld the reply."
        )
    return reply
