"""Why a pasted request cannot become a tool.

SampleRefused
├── UnsupportedOption
└── UnreadableSample
"""

from django.utils.translation import gettext as _


class SampleRefused(Exception):
    """The pasted text cannot become a tool; the message is for a person."""


class UnsupportedOption(SampleRefused):
    """curl would do something that tools cannot."""

    def __init__(self, option: str) -> None:
        super().__init__(
            _("Remove the option %(option)s: tools cannot do what it does.")
            % {"option": option[:80]}
        )


class UnreadableSample(SampleRefused):
    """It is neither a command nor a URL."""

    def __init__(self, why: str) -> None:
        super().__init__(
            _("This cannot be read as a cURL command or a URL: %(why)s.") % {"why": why}
        )
