"""Requests and replies of a call as they are on the wire."""

import json
from contextlib import suppress
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from pydantic_core import to_json

from runs.engine.types import ModelRequest, Reply
from runs.llm.base import Endpoint, WireRequest
from runs.llm.chat_completions import build_chat_message
from runs.llm.demo.client import Demo
from runs.llm.errors import ModelCallError
from runs.models import Provider, Run
from runs.services.providers.client import build_provider_wire_request
from runs.services.providers.mask_address import HIDDEN_ADDRESS, may_see_provider
from runs.views.run.step_detail import RowRecord, indent_json, rebuild_row_prompt


class RawRequest(NamedTuple):
    """A call's request as it is sent, with an indented body, and a note about it."""

    text: str
    note: str
    head: str = ""
    """Method, URL and headers, one per line."""
    size: int = 0
    """Bytes of the whole body as it is sent."""


FULL_BODY_BYTES = 1_000_000
"""Longer bodies are indented up to what a page shows."""


def build_raw_request(
    run: Run, place: RowRecord, *, most: int | None = None
) -> RawRequest:
    """Return a call's request; with `most`, the first characters of its body."""
    rebuilt = rebuild_row_prompt(run, place)
    if rebuilt is None:
        return RawRequest("", _("This request can no longer be rebuilt."))
    request = rebuilt.request
    provider = Provider.objects.filter(pk=request.settings.provider_id or 0).first()
    sent = build_sent_request(provider, request)
    shown = sent.body
    if most is not None and len(shown) > FULL_BODY_BYTES:
        shown = build_sent_request(provider, truncate_request(request, most)).body
    text = indent_request_body(json.loads(shown))[:most]
    if place.call is None:
        note = _("Built from the record; no reply yet.")
    elif run.is_imported:
        note = _("Built from the trace; the program may have sent it in another form.")
        return RawRequest(text, note, "", len(sent.body))
    elif rebuilt.matches_digest:
        note = _("Rebuilt from the record; its messages match the stored digest.")
    else:
        note = _(
            "Rebuilt from the record; its messages do not match the stored digest."
        )
    if sent.url and provider is not None and not may_see_provider(run, provider):
        head = f"{sent.method} {HIDDEN_ADDRESS}"
        note += " " + _("The address of the provider is hidden.")
    else:
        head = format_head(sent)
        note = f"{note} {_note_format(provider, sent)}"
    return RawRequest(text, note, head, len(sent.body))


def build_sent_request(provider: Provider | None, request: ModelRequest) -> WireRequest:
    """Return the request as the provider's connection builds it.

    For a provider that is gone, in the Chat Completions format.
    """
    if provider is not None:
        with suppress(ModelCallError):
            return build_provider_wire_request(provider, request)
    return Demo(Endpoint("")).build_wire_request(request)


def _note_format(provider: Provider | None, sent: WireRequest) -> str:
    if sent.url:
        return _("Values of headers with secrets are hidden.")
    if provider is None:
        return _(
            "The provider was deleted, so the body is in the Chat Completions format."
        )
    return _("This provider has no server, so nothing is sent.")


def format_head(sent: WireRequest) -> str:
    """Return method, URL and headers; nothing without a server."""
    if not sent.url:
        return ""
    headers = [f"{name}: {value}" for name, value in sent.headers.items()]
    return "\n".join([f"{sent.method} {sent.url}", *headers])


def truncate_request(request: ModelRequest, most: int) -> ModelRequest:
    """Return `request` without the messages after the first `most` characters.

    A character takes four bytes at most, and the indented text is the longer one.
    """
    length = 0
    for count, message in enumerate(request.messages, 1):
        length += len(message.canonical) // 4
        if length > most:
            return request.model_copy(update={"messages": request.messages[:count]})
    return request


def build_raw_response(place: RowRecord) -> tuple[str, str]:
    """Return the provider's assembled message, indented, and a note about it."""
    call = place.call
    assert call is not None
    if call.is_edited or call.run.is_imported:
        return indent_json(call.reply), _("The reply as stored.")
    native = call.reply.get("native")
    message = native or build_chat_message(Reply.model_validate(call.reply))
    return indent_json(message), _("The message of the provider, with unknown fields.")


def indent_request_body(body: dict[str, Any]) -> str:
    """Return an indented request body; it may have thousands of messages.

    The fast encoder writes their texts as the standard one does.
    """
    name = "input" if "input" in body else "messages"
    if not isinstance(body.get(name), list):
        return indent_json(body)
    frame = indent_json({**body, name: []})
    messages = to_json({name: body.get(name)}, indent=2).decode()
    return frame.replace(f'\n  "{name}": []', messages[1:-2], 1)
