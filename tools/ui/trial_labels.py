"""What the test pane of a tool says, by kind of tool."""

from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from tools.typed_generics import StrOrPromise


class TrialLabels(NamedTuple):
    """The words for one kind of tool."""

    button: StrOrPromise
    confirm: StrOrPromise
    """The button of a call that has to be confirmed."""
    icon: str
    hint: StrOrPromise
    """What the button does."""
    input_title: StrOrPromise
    """The title of what is sent."""


REQUEST_LABELS = TrialLabels(
    _("Send"), _("Send anyway"), "send", _("Sends a real request"), _("Request")
)
TRIAL_LABELS = {
    "python": TrialLabels(
        _("Run"), _("Run anyway"), "play", _("Runs the code in its sandbox"), _("Input")
    ),
    "function": TrialLabels(
        _("Run"), _("Run anyway"), "play", _("Calls the function"), _("Input")
    ),
    "sql": TrialLabels(
        _("Run"), _("Run anyway"), "play", _("Queries the database"), _("Query")
    ),
}
"""By kind; the others send a request."""

PHASE_LABELS: dict[str, StrOrPromise] = {
    "prepare": _("Preparation"),
    "connect": _("Connect"),
    "tls": _("TLS"),
    "waiting": _("Waiting"),
    "download": _("Download"),
}
