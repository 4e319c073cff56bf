"""CrewAI: agents.yaml."""

import pytest

from runs.services.importers.errors import ForeignFileRefused
from tests.services.importers.convert import convert, get_messages, get_skipped

pytestmark = pytest.mark.django_db

AGENTS = """
book_finder:
  role: >
    Finder of books on {topic}
  goal: Find {"three"} books
  backstory: You know every library.
  llm: anthropic/claude-sonnet-4-5
  max_iter: 4
  tools: [SerperTool, ScrapeWebsiteTool]
  allow_delegation: true
writer:
  role: Writer
  goal: Write
  backstory: ''
"""


def test_each_agent_becomes_an_agent():
    found = convert(AGENTS)

    finder, writer = found.file.agents
    assert (finder.name, finder.description) == (
        "Book finder",
        "Finder of books on {topic}",
    )
    assert (finder.provider, finder.model) == ("anthropic", "claude-sonnet-4-5")
    assert finder.executor.max_iterations == 4
    assert (writer.provider, writer.model) == ("local", "qwen3")
    assert get_messages(found, "book-finder-instructions") == [
        (
            "system",
            "You are Finder of books on {topic}.\n\nYou know every library.\n\n"
            'Your goal: Find {{"three"}} books',
        ),
        ("user", "{input}"),
    ]


def test_lists_exactly_what_has_no_counterpart():
    assert list(get_skipped(convert(AGENTS))) == [
        "Setting “book_finder: {topic}”",
        "Setting “book_finder: allow_delegation”",
        "Tool “ScrapeWebsiteTool” (book_finder)",
        "Setting “model”",
        "Connections between agents",
    ]


def test_tasks_are_recognized_by_name():
    with pytest.raises(ForeignFileRefused, match="This is a CrewAI tasks file"):
        convert("one: {description: Do it, expected_output: Done, agent: writer}")
