"""English texts avoid the expressions that the house style replaces.

The texts are those of pages and scripts, wherever they are marked for translation, of
the documentation, and of docstrings and comments. CONTRIBUTING.md has the glossary.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
GETTEXT_NAMES = {
    "_",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "ngettext",
    "ngettext_lazy",
    "npgettext",
    "pgettext",
    "pgettext_lazy",
    "translatable",
}
GETTEXT_CALL = re.compile(rf"\b({'|'.join(GETTEXT_NAMES)})\b")
"""Without one of the names a file has no text, and need not be parsed."""
TRANSLATE_TAG = re.compile(r"{%\s*translate\s+(?:\"([^\"]*)\"|'([^']*)')")
BLOCK_TAG = re.compile(
    r"{%\s*blocktranslate\b[^%]*%}(.*?){%\s*endblocktranslate\s*%}", re.DOTALL
)
SCRIPT_CALL = re.compile(r"\bn?gettext\(((?:[^()]|\([^()]*\))*)\)")
SCRIPT_TEXT = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`([^`]*)`")
MARKDOWN_CODE = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`\n]*`|^    [^\n]*$", re.DOTALL | re.M
)

AVOIDED = {
    r"\ba yes\b": "approval",
    r"\bsays? yes\b": "approve",
    r"\bany ?more\b": "no longer",
    r"(?<!there )\b(is|are|was|were|be) no (?!longer|more|other)\w+": "is not a",
    r"\b(is|are|be|been|was|were|being) told\b": "notified, reported",
    r"\bnobody is told\b": "nobody is notified",
    r"(?<!can )\btells?\b": "says, shows, reports, notifies",
    r"\bput(s|ting)? away\b": "archive",
    r"\btake(s|n)? away\b|\btook away\b|\btaking away\b": "remove, revoke",
    r"\bone a line\b": "one per line",
    r"\bsigns? of life\b": "heartbeat",
    r"\bat work\b": "running",
    r"\bthe chosen\b|\bchosen (runs|steps?|calls|tools|rows)\b": "selected",
    r"\bchoose none\b": "clear the selection",
    r"(?<!%)\b\d+ %(?!\()": "no space before %",
    r"\bcancell(ed|ing)\b": "canceled",
    r"\b(colour|behaviour|favourite|catalogue|licence|licenced|labelled|grey)\w*": (
        "American spelling"
    ),
    r"\b(un)?authoris|\b(organ|real|summar|recogn|sanit)is(e|ed|es|ing)\b": (
        "American spelling"
    ),
    r"\bUsual model\b": "default model",
    r"\blongest wait\b": "timeout",
    r"\blongest reply\b": "max output tokens",
    r"\bneeds? a look\b|\bmend(s|ed|ing)?\b": "fix",
    r"^Empty: |\. Empty: ": "Leave empty to",
    r"\bAnswer again\b": "Regenerate",
    r"\bmake up for\b|\bmade up for\b": "catch up",
    r"\bfor ever\b": "forever",
    r"\bswitched (off|on)\b": "disabled, enabled",
    r"\bswitch(es)? (it|them)? ?(off|on)\b": "disable, enable",
    r"\bgone on\b|\bgo(es)? on\b": "continue, resume",
    r"\btyped? in\b": "enter",
    r"\bplease\b": "(leave out)",
}
"""What to avoid, as a pattern, and what to write instead."""

AVOIDED_IN_CODE = {
    **{
        pattern: better
        for pattern, better in AVOIDED.items()
        if better not in {"timeout", "enter"}  # plain words there: a type in a schema
    },
    r"\btold\b|\btelling\b": "sent, shown, notified",
    r"\bborders?\b": "boundary; top-level handler",
}
"""What to avoid in docstrings and comments."""

ALLOWED = {
    "templates/workers/_list.html": [r"longest wait"],  # of the queue, not of a tool
    "CONTRIBUTING.md": [r"switch off"],  # explains the word "disable"
}
"""Expressions that a file may contain, each for a reason."""


class Text(NamedTuple):
    """One text and the place where it is written."""

    place: str
    words: str


def texts_of_python(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    if not GETTEXT_CALL.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if called not in GETTEXT_NAMES:
            continue
        count = 2 if called.startswith("ng") else None  # a lazy one names its number
        for argument in node.args[:count]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield Text(f"{name_of(path)}:{node.lineno}", argument.value)


def texts_of_template(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    for pattern in (TRANSLATE_TAG, BLOCK_TAG):
        for found in pattern.finditer(source):
            line = source.count("\n", 0, found.start()) + 1
            words = next(group for group in found.groups() if group is not None)
            yield Text(f"{name_of(path)}:{line}", " ".join(words.split()))


def texts_of_script(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    for call in SCRIPT_CALL.finditer(source):
        line = source.count("\n", 0, call.start()) + 1
        for found in SCRIPT_TEXT.finditer(call[1]):
            yield Text(f"{name_of(path)}:{line}", found[1] or found[2] or found[3])


def texts_of_page(path: Path) -> Iterator[Text]:
    source = MARKDOWN_CODE.sub(
        lambda code: "\n" * code[0].count("\n"), path.read_text(encoding="utf-8")
    )
    for number, line in enumerate(source.splitlines(), start=1):
        yield Text(f"{name_of(path)}:{number}", line)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def collect_texts() -> list[Text]:
    return [*texts_of_code(), *texts_of_pages()]


def python_files() -> Iterator[Path]:
    for package in ("agentsite", "runs", "tools"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def texts_of_code() -> Iterator[Text]:
    for path in python_files():
        yield from texts_of_python(path)
    for package in ("agentsite", "runs", "tools"):
        for path in sorted((ROOT / package).glob("static/**/*.js")):
            if "vendor" not in path.parts:
                yield from texts_of_script(path)


def texts_of_pages() -> Iterator[Text]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        yield from texts_of_template(path)
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        if "zh-hans" not in str(path):
            yield from texts_of_page(path)


def texts_for_developers(path: Path) -> Iterator[Text]:
    """Yield each docstring, also those under fields, and each comment."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(words))):
                yield Text(f"{name_of(path)}:{node.lineno}", " ".join(words.split()))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(f"{name_of(path)}:{token.start[0]}", token.string)


def complaints_about(text: Text, avoided: dict[str, str] = AVOIDED) -> list[str]:
    allowed = ALLOWED.get(text.place.rpartition(":")[0], [])
    words = text.words
    for pattern in allowed:
        words = re.sub(pattern, "", words, flags=re.IGNORECASE)
    return [
        f"{text.place}: {found[0]!r} -> {better}"
        for pattern, better in avoided.items()
        if (found := re.search(pattern, words, re.IGNORECASE))
    ]


def test_texts_use_the_words_of_the_field():
    found = [line for text in collect_texts() for line in complaints_about(text)]

    assert not found, "\n".join(["", *found])


def test_docstrings_and_comments_use_the_words_of_the_field():
    texts = [text for path in python_files() for text in texts_for_developers(path)]
    found = [line for text in texts for line in complaints_about(text, AVOIDED_IN_CODE)]

    assert len(texts) > 1000
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('"""Return what the model is told."""', id="module"),
        pytest.param("def f():\n    '''Mend it.'''", id="function"),
        pytest.param('x = 1\n"""Kept for\n  ever."""', id="field"),
        pytest.param("try_it()  # at a border: no run may stop it", id="comment"),
    ],
)
def test_an_avoided_expression_is_found_in_code(tmp_path, monkeypatch, source):
    monkeypatch.setattr("tests.project.test_wording.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(source)
    (text,) = texts_for_developers(tmp_path / "module.py")

    assert complaints_about(text, AVOIDED_IN_CODE)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("This call needs a yes.", id="a-yes"),
        pytest.param("The link works no more, or not any more.", id="any-more"),
        pytest.param("{id} is no argument of this tool.", id="is-no"),
        pytest.param("You are told.", id="told"),
        pytest.param("One a line.", id="one-a-line"),
        pytest.param("84 % left", id="space-before-percent"),
        pytest.param("The run was cancelled.", id="cancelled"),
        pytest.param("Pick a colour.", id="colour"),
    ],
)
def test_an_avoided_expression_is_found(words):
    assert complaints_about(Text("page.html:1", words))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("It is no longer available.", id="no-longer"),
        pytest.param("%(used)s of 100 %(unit)s", id="placeholder"),
        pytest.param("16% used", id="percent"),
    ],
)
def test_a_usual_expression_is_not_found(words):
    assert complaints_about(Text("page.html:1", words)) == []


def test_texts_of_every_source_are_collected():
    suffixes = {Path(text.place.rpartition(":")[0]).suffix for text in collect_texts()}

    assert {".html", ".md", ".py"} <= suffixes
