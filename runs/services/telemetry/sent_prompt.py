"""What a model call sent: rebuilt, or as recorded in the trace of another program."""

from runs.models import ModelCall
from runs.services.runs.rebuild_prompt import (
    RebuiltPrompt,
    count_shared_messages,
    rebuild_prompt,
)
from runs.services.telemetry.importing.run import load_sent_requests


def load_sent_prompt(call: ModelCall) -> RebuiltPrompt | None:
    """Return what `call` sent; None if nobody knows."""
    return load_imported_prompt(call) if call.run.is_imported else rebuild_prompt(call)


def load_imported_prompt(call: ModelCall) -> RebuiltPrompt | None:
    """Return what the trace says that a call sent; None if it has no messages."""
    requests = load_sent_requests(call)
    if not requests or not requests[-1].messages:
        return None
    *before, request = requests
    earlier = before[-1].messages if before else ()
    return RebuiltPrompt(
        request,
        matches_digest=False,  # of what another program sent, nothing is proven
        known_messages=count_shared_messages(request.messages, earlier),
    )
