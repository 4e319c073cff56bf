"""The keyboard shortcuts."""

import pytest
from django.contrib.auth.models import Group
from django.urls import get_resolver, resolve

from runs.ui.frame.shortcuts import ALL_PAGES, JUMPS, PAGE_SHORTCUTS, list_shortcuts
from tests.access import doors
from tests.every_address import ERROR_PAGES, ask, list_addresses, render_nothing
from tests.make import make_agent, make_user
from tests.makers.world import make_world

KEYS_OF_SCRIPTS = {
    "unsaved": (("Ctrl S",), {"agent-create", "retention", "tools_tool_change"}),
    "editor": (("{",), {"agent-edit", "playground", "prompt-create"}),
    "list": (("j", "k"), {"agent-list", "approval-detail", "experiment-list"}),
}
"""Keys that a script listens to, and a few of the pages that have the script."""


def test_each_page_with_shortcuts_exists():
    patterns = get_resolver().url_patterns
    names = {door.name.removeprefix("admin:") for door in doors(patterns)}

    assert PAGE_SHORTCUTS.keys() | JUMPS.keys() <= names


def test_jumps_are_listed_with_their_letters():
    listed = {one.keys[1] for one in ALL_PAGES.shortcuts if one.is_sequence}

    assert listed == {*JUMPS.values(), "n"}
    assert len(set(JUMPS.values())) == len(JUMPS)


def test_a_page_has_its_own_shortcuts_first():
    assert [group.label for group in list_shortcuts("run-detail")] == [
        "Run",
        "All pages",
    ]
    assert list_shortcuts("usage") == [ALL_PAGES]


@pytest.mark.django_db
def test_the_dialog_shows_those_of_the_page_and_the_page_shows_all(client, ann):
    part = {"HX-Request": "true"}
    url = "/shortcuts/?page=run-detail"

    assert "Next error" in client.get(url, headers=part).text
    assert "Send the message" not in client.get(url, headers=part).text
    assert "Send the message" in client.get(url).text


@pytest.mark.django_db
def test_pages_link_to_their_shortcuts_and_jump_keys(client, ann):
    page = client.get("/runs/").text

    assert 'href="/shortcuts/?page=run-list"' in page
    assert 'data-jump="r"' in page


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("run-list", ["Next and previous run", "Select all runs up to this one"]),
        ("dataset-detail", ["Add an example", "Save the version"]),
        ("queue-item", ["Undo the last annotation"]),
        ("agent-edit", ["Move through the list of tools", "Send the test message"]),
        ("dataset-example", ["Save"]),
        ("tool-create", ["In Python code: show completions"]),
        ("tool-detail", ["In Python code: complete the word, or indent"]),
        ("tools_tool_change", ["Save", "In Python code: leave the editor"]),
    ],
)
def test_pages_with_keys_of_their_own_list_them(page, words):
    own, *_ = list_shortcuts(page)

    assert {str(one.words) for one in own.shortcuts} >= set(words)


@pytest.mark.django_db
@pytest.mark.slow
def test_pages_with_the_script_of_a_key_list_it(client, monkeypatch):
    render_nothing(monkeypatch, *ERROR_PAGES)
    owner = make_user(is_superuser=True)
    make_world(owner, Group.objects.create(name="crew"))
    client.force_login(owner)
    pages = [
        (resolve(one.path.partition("?")[0]).url_name, ask(client, "GET", one.path))
        for one in list_addresses()
    ]

    for script, (keys, others) in KEYS_OF_SCRIPTS.items():
        file = f"runs/{script}.js".encode()
        found = {name for name, answer in pages if file in answer.content}
        listed = {
            page
            for page in found
            if keys in {one.keys for one in list_shortcuts(page)[0].shortcuts}
        }

        assert found > others, script
        assert found - listed <= {"dataset-detail", "token-list"}, script  # no rows


@pytest.mark.django_db
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_people_who_only_chat_see_the_keys_of_their_chat(client, ann, headers):
    url = "/shortcuts/?page=chat"
    calm = client.get(url, headers=headers).text.rpartition("<main")[2]
    make_agent(ann)
    full = client.get(url, headers=headers).text

    assert "Send the message" in calm
    assert "Search conversations" in calm
    assert "Ctrl K" not in calm
    assert "Ctrl K" in full
