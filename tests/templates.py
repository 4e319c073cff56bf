"""What a template must look like: page or part, by name; nothing inline."""

import re
from collections.abc import Iterator
from pathlib import Path

BASES = {"base.html", "chat/page.html", "lists/page.html"}
"""What a page can extend."""

STANDALONE = {"base.html", "400.html", "500.html"}
"""Pages that extend nothing; the second must work when everything else is broken."""

MAX_COLUMNS = 140

COMMENT = re.compile(r"\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}", re.DOTALL)
LOGIC = re.compile(r"\{%.*?%\}", re.DOTALL)
TAG = re.compile(r"<([a-z][\w-]*)((?:\"[^\"]*\"|'[^']*'|\{\{.*?\}\}|[^>\"'])*)>", re.S)
INLINE = [
    (re.compile(r"<script(?![^>]*\bsrc=)", re.I), "an inline script"),
    (re.compile(r"<style\b", re.I), "an inline style sheet"),
    (re.compile(r"<[a-z][^>]*\sstyle=", re.I), "an inline style"),
    (re.compile(r"<[a-z][^>]*\son[a-z]+=", re.I), "an inline event handler"),
    (re.compile(r"\shx-on\b", re.I), "an inline event handler"),
    (re.compile(r"<!--"), "an HTML comment; write {# why #}"),
    (re.compile(r"(?:src|href)=\"(?:https?:)?//[^\"]*\.(?:js|css)"), "a foreign file"),
    (re.compile(r"\|\s*safe\b"), "the filter `safe`"),
]


def faults(folder: Path) -> list[str]:
    """Return a sentence for each fault of the templates under `folder`."""
    return [
        f"{path.relative_to(folder)}: {why}."
        for path in sorted(folder.rglob("*.html"))
        for why in faults_of(path.relative_to(folder), path.read_text())
    ]


def faults_of(path: Path, text: str) -> Iterator[str]:
    """Yield what is wrong with one template."""
    if path.name != "_icons.html":  # the path of a shape has no place to break
        yield from faults_of_length(text)
    text = COMMENT.sub("", text)
    if path.parts[0] != "admin":  # these replace the admin's own, by its rules
        yield from (
            faults_of_part(path, text) if is_part(path) else faults_of_page(path, text)
        )
    for pattern, what in INLINE:
        if pattern.search(LOGIC.sub(" ", text)):
            yield f"it has {what}"
    yield from faults_without_script(LOGIC.sub(" ", text))


def faults_of_length(text: str) -> Iterator[str]:
    """A line fits beside another file."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > MAX_COLUMNS:
            yield f"line {number} has more than {MAX_COLUMNS} columns"


def is_part(path: Path) -> bool:
    """Whether the name says part."""
    return path.name.startswith("_")


def faults_of_page(path: Path, text: str) -> Iterator[str]:
    """A page begins with the line that extends the base."""
    if path.name in STANDALONE:
        return
    first = re.match(r'\s*\{% extends "([^"]+)" %\}', text)
    if first is None or first[1] not in BASES:
        yield 'a page begins with {% extends "base.html" %}'


def faults_of_part(path: Path, text: str) -> Iterator[str]:
    """A part extends nothing, and its outermost tag is named after it."""
    if "{% extends" in text:
        yield "a part extends nothing"
    wanted = id_of(path)
    outermost = TAG.search(LOGIC.sub(" ", text))
    if outermost is None:
        yield "a part has an outermost tag"
    elif outermost[1] != "hx-partial" and not re.search(
        rf'\sid="{wanted}(-\{{\{{[^"]*)?"', outermost[2]
    ):
        yield f'its outermost tag has no id="{wanted}"'


def id_of(path: Path) -> str:
    """Return the id: the folder without its `s`, then the part."""
    noun = path.parent.name.removesuffix("s")
    part = path.stem.removeprefix("_")
    return f"{noun}-{part}".replace("_", "-")


def faults_without_script(text: str) -> Iterator[str]:
    """Buttons and links work without JavaScript."""
    for name, attributes in TAG.findall(text):
        if "hx-post=" in attributes and name not in {"form", "button"}:
            yield f"hx-post is on <{name}>, not on a form or button"
        if "hx-get=" in attributes and name == "a" and "href=" not in attributes:
            yield "a link with hx-get has no href"
