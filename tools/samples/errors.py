"""Why a pasted request cannot become a tool.

SampleRefused
├── BodyNotSent
├── BodyNotSupported
├── BodyTypeNotSupported
├── FileNotRead
├── NumberNotSent
├── RepeatedFile
├── SampleTooLong
├── UnnamedData
├── UnreadableSample
└── UnsupportedOption
"""

from django.utils.formats import number_format
from django.utils.translation import gettext as _


class SampleRefused(Exception):
    """The pasted text cannot become a tool; the message is for a person."""


class BodyNotSent(SampleRefused):
    """The request has a body, and tools send none with its method."""

    def __init__(self, method: str) -> None:
        super().__init__(
            _(
                "Tools send no body with %(method)s. Remove the data, or send it in "
                "the query with -G."
            )
            % {"method": method}
        )


class BodyNotSupported(SampleRefused):
    """The body is neither a JSON object nor a form."""

    def __init__(self) -> None:
        super().__init__(
            _("The body is neither a JSON object nor a form, so no tool can send it.")
        )


class BodyTypeNotSupported(SampleRefused):
    """The body is of another type, such as XML."""

    def __init__(self, content_type: str) -> None:
        super().__init__(
            _(
                "Tools cannot send a body of the type %(type)s. They send JSON objects "
                "and forms."
            )
            % {"type": content_type[:80]}
        )


class FileNotRead(SampleRefused):
    """curl would read a file of the person's computer."""

    def __init__(self, option: str) -> None:
        super().__init__(
            _("Replace “%(option)s” with the content of the file: it is not read.")
            % {"option": option[:80]}
        )


class NumberNotSent(SampleRefused):
    """The body has a number that JSON cannot hold, such as NaN."""

    def __init__(self, number: str) -> None:
        super().__init__(
            _(
                "The body contains “%(number)s”, which tools cannot send. Replace it "
                "with another value."
            )
            % {"number": number[:80]}
        )


class RepeatedFile(SampleRefused):
    """A field of a form has a file and another value."""

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "The field “%(name)s” has a file and another value. Remove all but one "
                "of them."
            )
            % {"name": name[:80]}
        )


class SampleTooLong(SampleRefused):
    """The text has more characters than are read."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            _(
                "The text is longer than %(count)s characters. Remove what the request "
                "does not need."
            )
            % {"count": number_format(limit, force_grouping=True)}
        )


class UnnamedData(SampleRefused):
    """Encoded data is not a field of a form."""

    def __init__(self, option: str) -> None:
        super().__init__(
            _("“%(option)s” has no name: write it as name=value, or remove it.")
            % {"option": option[:80]}
        )


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
