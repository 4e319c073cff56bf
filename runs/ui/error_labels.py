"""Labels of the error codes of failed runs, in the active language."""

from django.utils.translation import gettext, gettext_lazy

from tools.text.translatable import translate_text

ERROR_LABELS = {
    "auth": gettext_lazy("API key rejected"),
    "bad_reply": gettext_lazy("Invalid reply from the model server"),
    "bad_request": gettext_lazy("Request rejected by the model server"),
    "content_filter": gettext_lazy("Blocked by a content filter"),
    "context_too_long": gettext_lazy("Request too long for the model"),
    "crashed_repeatedly": gettext_lazy("Worker crashed repeatedly"),
    "forbidden": gettext_lazy("Access denied by the model server"),
    "inputs": gettext_lazy("Invalid inputs"),
    "internal": gettext_lazy("Internal error"),
    "limits": gettext_lazy("Invalid limits"),
    "not_recorded": gettext_lazy("Call not recorded"),
    "not_found": gettext_lazy("Model or address not found"),
    "outcome_unknown": gettext_lazy("Unknown outcome of a call"),
    "overloaded": gettext_lazy("Model server overloaded"),
    "parse_error": gettext_lazy("Unreadable reply"),
    "parse_errors": gettext_lazy("Too many unreadable replies"),
    "rate_limit": gettext_lazy("Rate limit reached"),
    "refused_address": gettext_lazy("Address not allowed"),
    "restored": gettext_lazy("Stopped by a restore"),
    "spec": gettext_lazy("Invalid agent"),
    "timeout": gettext_lazy("Model server did not respond in time"),
    "tool_failed": gettext_lazy("Tool call failed"),
    "transport": gettext_lazy("Model server not reachable"),
}


def describe_error(message: str, code: str) -> str:
    """Return a stored message in the viewer's language, or the label of its code."""
    return translate_text(message, gettext) or get_error_label(code)


def get_error_label(code: str) -> str:
    """Return the label of an error code; a code of an extension is not listed."""
    return str(ERROR_LABELS.get(code, gettext_lazy("Other error")))
