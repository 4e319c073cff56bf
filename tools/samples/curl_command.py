"""Reading a cURL command, as browsers and API documentation offer it for copying.

Nothing is sent and no file is read.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from django.utils.translation import gettext as _

from tools.samples.errors import (
    FileNotRead,
    SampleTooLong,
    UnnamedData,
    UnreadableSample,
    UnsupportedOption,
)
from tools.text.storable import replace_unstorable

MAX_COMMAND = 200_000
"""Characters."""

VALUE_OPTIONS = {
    "-X": "method",
    "--request": "method",
    "-H": "header",
    "--header": "header",
    "-d": "data",
    "--data": "data",
    "--data-ascii": "data",
    "--data-binary": "data",
    "--data-raw": "raw",
    "--data-urlencode": "encoded",
    "--json": "json",
    "-F": "part",
    "--form": "part",
    "--form-string": "text part",
    "-u": "user",
    "--user": "user",
    "--oauth2-bearer": "user",
    "--url": "url",
    "-A": "ignored",
    "--user-agent": "ignored",
    "-e": "ignored",
    "--referer": "ignored",
    "-b": "cookie",
    "--cookie": "cookie",
    "-o": "ignored",
    "--output": "ignored",
    "-m": "ignored",
    "--max-time": "ignored",
    "--connect-timeout": "ignored",
    "--retry": "ignored",
    "-w": "ignored",
    "--write-out": "ignored",
}
FLAGS = {
    "-G": "get",
    "--get": "get",
    "-I": "head",
    "--head": "head",
    **dict.fromkeys(
        (
            *("-s", "--silent", "-S", "--show-error", "-L", "--location", "-i"),
            *("--include", "-v", "--verbose", "-k", "--insecure", "-f", "--fail"),
            *("-g", "--globoff", "-N", "--no-buffer", "-#", "--compressed"),
            *("--http1.1", "--http2", "-4", "-6", "--fail-with-body"),
        ),
        "ignored",
    ),
}
PIPE = re.compile(r"\|(?!\|)")
REDIRECTION = re.compile(r"[\d&]?>")
WINDOWS_QUOTE = re.compile(r'curl(\.exe)?\s+(-\S+\s+)*\^"')
PART_ATTRIBUTE = re.compile(r";\s*(type|filename|headers|encoder)=.*", re.DOTALL)
WORD_PART = re.compile(
    r"""(?P<gap>(?:\s|[\\^][ \t]*\r?\n|\\[ \t]*\Z)+)
    |\$'(?P<ansi>(?:[^'\\]|\\.)*)'
    |'(?P<single>[^']*)'
    |\$?"(?P<double>(?:[^"\\]|\\.)*)"
    |\\(?P<escaped>.)
    |(?P<plain>[^\s'"\\$^]+|[$^])""",
    re.DOTALL | re.VERBOSE,
)
"""What a word of a shell command is made of, and the gap between two words."""

ANSI_ESCAPE = re.compile(
    r"(?P<bytes>(?:\\x[0-9a-fA-F]{1,2}|\\[0-7]{1,3})+)"
    r"|\\(?:u(?P<short>[0-9a-fA-F]{1,4})|U(?P<long>[0-9a-fA-F]{1,8})|(?P<letter>.))",
    re.DOTALL,
)
ANSI_LETTERS = {
    **{"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n"},
    **{"r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?"},
}


class FormPart(NamedTuple):
    """A field of a multipart form."""

    name: str
    value: str
    """Its text; of a file, the path and attributes such as `;type=image/png`."""
    is_file: bool = False


@dataclass
class SampleRequest:
    """One request, as it was pasted."""

    url: str = ""
    method: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    """Parts of the body, which curl joins with `&`."""
    parts: list[FormPart] = field(default_factory=list)
    is_json: bool = False
    is_query: bool = False
    """Whether the data belongs to the query."""
    left_out: list[str] = field(default_factory=list)
    """Secrets that are not taken over, by name."""

    @property
    def has_body(self) -> bool:
        return bool(self.parts or (self.data and not self.is_query))


def parse_sample_request(text: str) -> SampleRequest:
    """Return the request of a cURL command, or a GET of a URL.

    Raise `SampleRefused`.
    """
    text = re.sub(r"^\$\s+", "", text.strip())  # the prompt of a shell
    if len(text) > MAX_COMMAND:
        raise SampleTooLong(MAX_COMMAND)
    if re.match(r"https?://\S+$", text):
        return SampleRequest(url=text, method="GET")
    if re.match(r"https?://", text):
        raise UnreadableSample(_("there is text after the URL"))
    if WINDOWS_QUOTE.match(text):
        raise UnreadableSample(
            _(
                "it is written for the Windows command prompt; select Copy as cURL "
                "(bash) in the browser instead"
            )
        )
    words = split_command(text)
    if not words or words[0] != "curl":
        raise UnreadableSample(_("it begins with neither curl nor https://"))
    sample = SampleRequest()
    for option, value in iter_options(words[1:]):
        apply_option(sample, option, value)
    if not sample.url:
        raise UnreadableSample(_("it has no URL"))
    if "://" not in sample.url:
        sample.url = f"https://{sample.url}"
    if not sample.method:
        sample.method = "POST" if sample.has_body else "GET"
    return sample


def split_command(text: str) -> list[str]:
    """Return the words of a shell command; lines continue after a backslash or ^."""
    words: list[str] = []
    position, is_new = 0, True
    while position < len(text):
        match = WORD_PART.match(text, position)
        if match is None:
            raise UnreadableSample(_("no closing quotation mark"))
        position = match.end()
        if match["gap"]:
            is_new = True
            continue
        if is_new:
            words.append("")
        words[-1] += read_word_part(match)
        is_new = False
    return words


def read_word_part(match: re.Match[str]) -> str:
    """Return what bash makes of a quoted or plain part of a word."""
    if match["ansi"] is not None:
        return unescape_bash(match["ansi"])
    if match["double"] is not None:
        return re.sub(r'\\([$`"\\])|\\\r?\n', r"\1", match["double"])
    return match["single"] or match["escaped"] or match["plain"] or ""


def unescape_bash(text: str) -> str:
    """Return what bash makes of the inside of `$'…'`.

    Browsers write a character beyond U+FFFF as two escapes, which are joined.
    """
    found = ANSI_ESCAPE.sub(read_escape, text)
    joined = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return replace_unstorable(joined)


def read_escape(match: re.Match[str]) -> str:
    if match["bytes"]:
        codes = match["bytes"].split("\\")[1:]
        values = [
            int(code[1:], 16) if code[0] == "x" else int(code, 8) & 255
            for code in codes
        ]
        return bytes(values).decode("utf-8", "replace")
    if code := match["short"] or match["long"]:
        number = int(code, 16)
        return chr(number) if number <= sys.maxunicode else "\ufffd"
    return ANSI_LETTERS.get(match["letter"], match[0])


def iter_options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what each option does, with its value; raise `UnsupportedOption`."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if PIPE.match(word):
            return
        if REDIRECTION.match(word):
            del rest[: word.endswith(">")]  # the file is the next word
            continue
        if not word.startswith("-") or word == "-":
            yield "url", word
            continue
        option, value = split_option(word)
        if option in FLAGS:
            if value:  # several short options in one word
                rest.insert(0, f"-{value}")
            yield FLAGS[option], ""
        elif option in VALUE_OPTIONS:
            if not value and not rest:
                raise UnreadableSample(
                    _("the option %(option)s has no value") % {"option": option}
                )
            yield VALUE_OPTIONS[option], value or rest.pop(0)
        else:
            raise UnsupportedOption(option)


def split_option(word: str) -> tuple[str, str]:
    if word.startswith("--"):
        option, _equals, value = word.partition("=")
        return option, value
    return word[:2], word[2:]


SECRETS = {"user": "Authorization", "cookie": "Cookie"}
"""Options that carry a secret, and the header it would be sent in."""


def apply_option(sample: SampleRequest, option: str, value: str) -> None:
    if option in SECRETS:
        sample.left_out.append(SECRETS[option])
        return
    match option:
        case "url":
            if sample.url:
                raise UnreadableSample(
                    _("it has more than one URL, and a tool calls one")
                )
            sample.url = value
        case "method":
            sample.method = value.upper()
        case "head":
            sample.method = "HEAD"
        case "header":
            sample.headers += read_header(value)
        case "part" | "text part":
            sample.parts.append(read_part(value, is_text=option == "text part"))
        case "get":
            sample.is_query = True
        case _ if option != "ignored":
            add_data(sample, option, value)


def read_header(text: str) -> list[tuple[str, str]]:
    """Return the header that curl sends: `Name;` is empty, `Name:` is not sent."""
    if text.startswith("@"):
        raise FileNotRead(f"-H {text}")
    name, colon, value = text.partition(":")
    if colon:
        return [(name.strip(), value.strip())] if value.strip() else []
    name, semicolon, rest = text.partition(";")
    return [(name.strip(), "")] if semicolon and not rest.strip() else []


def read_part(text: str, *, is_text: bool) -> FormPart:
    """Return a field; `is_text` if no character of its value has a meaning to curl."""
    name, _equals, value = text.partition("=")
    if is_text:
        return FormPart(name, value)
    if value.startswith("<"):
        raise FileNotRead(f"-F {text}")
    if value.startswith("@"):
        return FormPart(name, value[1:], is_file=True)
    if attribute := PART_ATTRIBUTE.search(value):
        raise UnsupportedOption(attribute[0])
    return FormPart(name, value)


FILE_OPTIONS = {"data": "-d", "json": "--json"}
"""Options whose value after @ is the name of a file."""


def add_data(sample: SampleRequest, option: str, value: str) -> None:
    """Add to the body; raise `FileNotRead` or `UnnamedData`."""
    if option in FILE_OPTIONS and value.startswith("@"):
        raise FileNotRead(f"{FILE_OPTIONS[option]} {value}")
    sample.data.append(encode_field(value) if option == "encoded" else value)
    sample.is_json = sample.is_json or option == "json"


def encode_field(text: str) -> str:
    """Return `name=text` with the text percent-encoded."""
    name, equals, value = text.partition("=")
    option = f"--data-urlencode {text}"
    if not equals and "@" in text:
        raise FileNotRead(option)
    if not (name and equals):
        raise UnnamedData(option)
    return f"{name}={quote(value, safe='')}"
