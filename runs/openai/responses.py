"""Answers in the shape of the Responses API, whole and streamed.

Calls of an agent's tools are items of the type `mcp_call`: what a server has called
by itself. Clients would execute a `function_call`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, assert_never

from runs.live.narration import (
    AnswerBreak,
    AnswerText,
    CallEnded,
    CallStarted,
    DecisionNeeded,
    Reasoning,
    RunEnded,
    Said,
    dump_arguments,
    get_output_text,
    shorten_observation,
)
from runs.live.run_links import build_run_url
from runs.models import Run
from runs.openai.outcomes import find_run_error, get_finish_reason

Json = dict[str, Any]
SERVER_LABEL = "agentsite"
STATUSES = {
    Run.Status.QUEUED: "queued",
    Run.Status.SUCCEEDED: "completed",
    Run.Status.LIMIT_REACHED: "incomplete",
    Run.Status.FAILED: "failed",
    Run.Status.CANCELED: "cancelled",
}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
EVENT_OF_STATUS = {"cancelled": "failed"}
"""Events for which there is no type of their own."""


@dataclass(frozen=True)
class ResponseHead:
    """What a response repeats of its request."""

    run_id: int
    model: str
    created_at: int
    metadata: dict[str, str] = field(default_factory=dict)
    previous_response_id: str | None = None
    background: bool = False


@dataclass
class ResponsesAnswer:
    head: ResponseHead
    wants_steps: bool = False
    output: list[Json] = field(default_factory=list)
    """Complete items."""
    _sequence: int = -1
    _text: str | None = None
    """Of the message that is being sent; None between messages."""
    _calls: dict[int, int] = field(default_factory=dict)
    """Position of the item of each started call, by step."""

    def begin(self) -> Iterator[bytes]:
        shape = response_json(self.head, status="in_progress")
        yield self._event("response.created", response=shape)
        yield self._event("response.in_progress", response=shape)

    def render(self, said: Said, url: str = "") -> Iterator[bytes]:
        """Yield the stream events for an event; `url` is where a person decides."""
        match said:
            case AnswerText():
                yield from self._render_text(said.text)
            case AnswerBreak():
                yield from self._end_message()
            case DecisionNeeded():
                yield from self._end_message()
                yield from self._whole_item(self._approval_item(said.step, url))
            case Reasoning():
                if self.wants_steps:
                    yield from self._end_message()
                    yield from self._whole_item(self._reasoning_item(said.text))
            case CallStarted() | CallEnded():
                if self.wants_steps:
                    yield from self._end_message()
                    yield from self._render_call(said)
            case RunEnded():
                yield from self._end_message()
                yield self._final_event(said.run)
            case _:
                assert_never(said)

    def interrupt(self, message: str) -> Iterator[bytes]:
        """Yield the end of a stream whose run continues."""
        yield self._event("error", code="server_error", message=message, param=None)

    def build_whole(self, said: list[Said], run: Json) -> Json:
        if self.wants_steps:
            for one in said:
                if isinstance(one, Reasoning | CallStarted | CallEnded):
                    list(self.render(one))
        if text := get_output_text(run):
            self.output.append(self._message_item(text))
        return ended_response_json(self.head, run, self.output)

    def _event(self, name: str, **fields: Any) -> bytes:
        self._sequence += 1
        shape = {"type": name, "sequence_number": self._sequence, **fields}
        body = json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
        return f"event: {name}\ndata: {body}\n\n".encode("utf-8", "replace")

    def _item_id(self, kind: str) -> str:
        return f"{kind}_{self.head.run_id}_{len(self.output)}"

    def _render_text(self, text: str) -> Iterator[bytes]:
        place = {
            "item_id": self._item_id("msg"),
            "output_index": len(self.output),
            "content_index": 0,
        }
        if self._text is None:
            self._text = ""
            item = {**self._message_item(""), "status": "in_progress", "content": []}
            yield self._event(
                "response.output_item.added",
                output_index=len(self.output),
                item=item,
            )
            yield self._event(
                "response.content_part.added", **place, part=text_part("")
            )
        self._text += text
        yield self._event(
            "response.output_text.delta", **place, delta=text, logprobs=[]
        )

    def _end_message(self) -> Iterator[bytes]:
        text, self._text = self._text, None
        if text is None:
            return
        item = self._message_item(text)
        place = {
            "item_id": item["id"],
            "output_index": len(self.output),
            "content_index": 0,
        }
        yield self._event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=text_part(text))
        yield self._event(
            "response.output_item.done", output_index=len(self.output), item=item
        )
        self.output.append(item)

    def _whole_item(self, item: Json) -> Iterator[bytes]:
        at = len(self.output)
        yield self._event("response.output_item.added", output_index=at, item=item)
        yield self._event("response.output_item.done", output_index=at, item=item)
        self.output.append(item)

    def _render_call(self, said: CallStarted | CallEnded) -> Iterator[bytes]:
        step = said.step
        if isinstance(said, CallStarted):
            self._calls[step["index"]] = at = len(self.output)
            item = self._call_item(step, self._item_id("mcp"))
            self.output.append(item)
            yield self._event("response.output_item.added", output_index=at, item=item)
            yield self._event(
                "response.mcp_call.in_progress", output_index=at, item_id=item["id"]
            )
            return
        at = self._calls[step["index"]]
        item = self._call_item(step, self.output[at]["id"])
        self.output[at] = item
        yield self._event(
            f"response.mcp_call.{item['status']}", output_index=at, item_id=item["id"]
        )
        yield self._event("response.output_item.done", output_index=at, item=item)

    def _final_event(self, run: Json) -> bytes:
        shape = ended_response_json(self.head, run, self.output)
        status = shape["status"]
        name = EVENT_OF_STATUS.get(status, status)
        return self._event(f"response.{name}", response=shape)

    def _message_item(self, text: str) -> Json:
        return {
            "id": self._item_id("msg"),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [text_part(text)],
        }

    def _reasoning_item(self, text: str) -> Json:
        return {
            "id": self._item_id("rs"),
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
        }

    def _approval_item(self, step: Json, url: str) -> Json:
        return {
            "id": self._item_id("mcpr"),
            "type": "mcp_approval_request",
            "name": step["tool"],
            "server_label": SERVER_LABEL,
            "arguments": dump_arguments(step),
            "url": url,
        }

    def _call_item(self, step: Json, item_id: str) -> Json:
        is_failed = step["status"] in ("failed", "rejected", "canceled")
        has_ended = is_failed or step["status"] in ("succeeded", "skipped")
        result = shorten_observation(step["observation"] or "")
        done = "failed" if is_failed else "completed"
        return {
            "id": item_id,
            "type": "mcp_call",
            "name": step["tool"],
            "server_label": SERVER_LABEL,
            "arguments": dump_arguments(step),
            "status": done if has_ended else "in_progress",
            "output": result if has_ended and not is_failed else None,
            "error": result or step["status"] if is_failed else None,
        }


def text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def ended_response_json(head: ResponseHead, run: Json, output: list[Json]) -> Json:
    status = STATUSES.get(run["status"], "in_progress")
    reason = get_finish_reason(run) if run["is_over"] else "stop"
    more: Json = {}
    if status in ("completed", "incomplete") and reason in INCOMPLETE:
        status = "incomplete"
        more["incomplete_details"] = {"reason": INCOMPLETE[reason]}
    error = find_run_error(run)
    if error is not None and status == "failed":
        more["error"] = {"code": "server_error", "message": error.message}
    if run["is_over"]:
        more["usage"] = response_usage_json(run)
    return response_json(head, status=status, output=output, **more)


def response_json(
    head: ResponseHead, *, status: str, output: list[Json] | None = None, **more: Any
) -> Json:
    return {
        "id": f"resp_{head.run_id}",
        "object": "response",
        "created_at": head.created_at,
        "status": status,
        "background": head.background,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": head.metadata,
        "model": head.model,
        "output": output or [],
        "parallel_tool_calls": True,
        "previous_response_id": head.previous_response_id,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        "run": build_run_url(head.run_id),
        **more,
    }


def response_usage_json(run: Json) -> Json:
    """Return the tokens of all model calls of the run."""
    read, written = run["usage"]["input_tokens"], run["usage"]["output_tokens"]
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
