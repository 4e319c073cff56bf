"""The documentation: links, and the index that leads to every page."""

import re
from pathlib import Path

import polib
import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LABEL = re.compile(r"(?<!\*)\*([^*\n]+)\*(?!\*)")
PLACEHOLDER = re.compile(r"%\\\(\w+\\\)[sd]")
CATALOG = ROOT / "agentsite/locale/zh_Hans/LC_MESSAGES/django.po"
HEADING = re.compile(r"(?m)^#+ (.+)$")


def find_pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def find_anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        for title in HEADING.findall(page.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("page", find_pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_to_a_file_and_heading(page):
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in LINK.findall(text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in find_anchors(target)):
            broken.append(link)

    assert broken == []


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {p.name for p in (ROOT / "docs").glob("*.md")} - {"index.md"}

    assert {name for name in pages if f"({name}" not in index} == set()


def test_the_index_of_decisions_leads_to_every_decision():
    folder = ROOT / "docs/decisions"
    index = (folder / "index.md").read_text(encoding="utf-8")
    pages = {p.name for p in folder.glob("[0-9]*.md")}

    assert {name for name in pages if f"({name})" not in index} == set()


def compile_texts() -> "re.Pattern[str]":
    """Return what matches each text of the product, with any number in its places."""
    entries = [one for one in polib.pofile(str(CATALOG)) if not one.obsolete]
    texts = {text for one in entries for text in (one.msgid, one.msgid_plural) if text}
    return re.compile(
        "|".join(PLACEHOLDER.sub("[0-9A-Z]+", re.escape(t)) for t in texts)
    )


def test_the_labels_of_the_tutorial_are_those_of_the_product():
    page = (ROOT / "docs/tutorial-evaluation.md").read_text(encoding="utf-8")
    known = compile_texts()

    labels = set(LABEL.findall(CODE.sub("", page)))

    assert len(labels) > 40
    assert {label for label in labels if known.fullmatch(label) is None} == set()
