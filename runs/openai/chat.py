"""Answers in the shape of Chat Completions, whole and streamed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from runs.live.narration import (
    PARAGRAPH,
    AnswerBreak,
    AnswerText,
    CallEnded,
    CallStarted,
    DecisionNeeded,
    Reasoning,
    RunEnded,
    Said,
    describe_step,
    get_output_text,
)
from runs.live.run_links import build_run_url
from runs.openai.outcomes import find_run_error, get_finish_reason

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"


@dataclass
class ChatAnswer:
    run_id: int
    model: str
    created: int
    wants_steps: bool = False
    includes_usage: bool = False
    _breaks: bool = False

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def render(self, said: Said, url: str = "") -> Iterator[bytes]:
        """Yield the chunks for an event; `url` is where a person decides."""
        match said:
            case AnswerText():
                yield self._chunk({"content": self._take_gap() + said.text})
            case AnswerBreak():
                self._breaks = True
            case DecisionNeeded():
                yield self._ask_person(said.step["tool"], url)
            case Reasoning() | CallStarted() | CallEnded():
                if self.wants_steps:
                    yield self._chunk({"reasoning_content": describe_step(said)})
            case RunEnded():
                yield from self._end(said.run)
            case _:
                assert_never(said)

    def interrupt(self, message: str) -> Iterator[bytes]:
        """Yield the end of a stream whose run continues."""
        yield format_chunk({"error": {"message": message, "type": "server_error"}})
        yield DONE

    def build_whole(self, said: list[Said], run: Json) -> Json:
        message = {
            "role": "assistant",
            "content": get_output_text(run),
            "refusal": None,
        }
        if self.wants_steps:
            steps = (Reasoning, CallStarted, CallEnded)
            message["reasoning_content"] = "".join(
                describe_step(one) for one in said if isinstance(one, steps)
            )
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": get_finish_reason(run),
            "logprobs": None,
        }
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": usage_json(run),
        }

    def _ask_person(self, tool: str, url: str) -> bytes:
        """Return the link to an approval in a place where the user sees it.

        Many chat programs hide reasoning, so it is part of the text unless the client
        asks for reasoning.
        """
        text = f"Waiting for approval of {tool}: {url}"
        approval = {"tool": tool, "url": url}
        if self.wants_steps:
            return self._chunk({"reasoning_content": f"{text}\n"}, approval=approval)
        content = self._take_gap() + text
        self._breaks = True
        return self._chunk({"content": content}, approval=approval)

    def _take_gap(self) -> str:
        """Return what separates the next text from the one before it."""
        gap = PARAGRAPH if self._breaks else ""
        self._breaks = False
        return gap

    def _end(self, run: Json) -> Iterator[bytes]:
        error = find_run_error(run)
        if error is not None:
            yield format_chunk(error.body)
        else:
            yield self._chunk({}, finish_reason=get_finish_reason(run))
            if self.includes_usage:
                whole = {"choices": [], "usage": usage_json(run)}
                yield format_chunk({**self._head("chat.completion.chunk"), **whole})
        yield DONE

    def _chunk(
        self, delta: Json, *, finish_reason: str | None = None, **more: Any
    ) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "finish_reason": finish_reason,
            "logprobs": None,
        }
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice], **more}
        if self.includes_usage:
            chunk["usage"] = None
        return format_chunk(chunk)

    def _head(self, kind: str) -> Json:
        return {
            "id": f"chatcmpl-{self.run_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": None,
            "run": build_run_url(self.run_id),
        }


def format_chunk(chunk: Json) -> bytes:
    body = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
    return f"data: {body}\n\n".encode("utf-8", "replace")


def usage_json(run: Json) -> Json:
    """Return the tokens of all model calls of the run."""
    read, written = run["usage"]["input_tokens"], run["usage"]["output_tokens"]
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }
