"""The documentation: links, and the index that leads to every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
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
