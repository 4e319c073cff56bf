"""Reading a cURL command, as browsers and API documentation offer it for copying.

Nothing is sent and no file is read.
"""

import codecs
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from django.utils.translation import gettext as _

from tools.samples.errors import UnreadableSample, UnsupportedOption

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
    "--form-string": "part",
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
ANSI_QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)


@dataclass
class SampleRequest:
    """One request, as it was pasted."""

    url: str = ""
    method: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    """Parts of the body, which curl joins with `&`."""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """Fields of a multipart form."""
    is_json: bool = False
    is_query: bool = False
    """Whether the data belongs to the query."""
    left_out: list[str] = field(default_factory=list)
    """Secrets that are not taken over, by name."""


def parse_sample_request(text: str) -> SampleRequest:
    """Return the request of a cURL command, or a GET of a URL.

    Raise `SampleRefused`.
    """
    text = text.strip()[:MAX_COMMAND]
    if re.match(r"https?://\S+$", text):
        return SampleRequest(url=text, method="GET")
    if re.match(r"https?://", text):
        raise UnreadableSample(_("there is text after the URL"))
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
        has_body = (sample.data and not sample.is_query) or sample.parts
        sample.method = "POST" if has_body else "GET"
    return sample


def split_command(text: str) -> list[str]:
    """Return the words of a shell command; lines continue after a backslash or ^."""
    text = re.sub(r"[ \t]*[\\^]\r?\n", " ", text)
    text = ANSI_QUOTED.sub(lambda match: shlex.quote(unescape_bash(match[1])), text)
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UnreadableSample(str(error).rstrip(".").lower()) from None


def unescape_bash(text: str) -> str:
    """Return what bash makes of the inside of `$'…'`."""
    return re.sub(
        r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)",
        lambda match: (
            codecs.decode(match[0], "unicode_escape")
            if match[1][0] in "uxnrtabfv\\'\""
            else match[1]
        ),
        text,
        flags=re.DOTALL,
    )


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
            sample.headers.append(split_pair(value, ":"))
        case "part":
            sample.parts.append(split_pair(value, "="))
        case "get":
            sample.is_query = True
        case _ if option != "ignored":
            add_data(sample, option, value)


def split_pair(text: str, separator: str) -> tuple[str, str]:
    name, _separator, value = text.partition(separator)
    return name.strip(), value.strip()


def add_data(sample: SampleRequest, option: str, value: str) -> None:
    """Add to the body; raise `UnsupportedOption` for the content of a file."""
    if option == "data" and value.startswith("@"):
        raise UnsupportedOption(f"-d {value}")
    if option == "encoded":
        name, _equals, text = value.partition("=")
        value = f"{name}={quote(text, safe='')}"
    sample.data.append(value)
    sample.is_json = sample.is_json or option == "json"
