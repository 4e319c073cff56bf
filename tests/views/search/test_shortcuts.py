"""The keyboard shortcuts."""

import pytest

from runs.ui.frame.shortcuts import ALL_PAGES, JUMPS, PAGE_SHORTCUTS, list_shortcuts
from runs.urls import urlpatterns as run_urls
from tools.urls import urlpatterns as tool_urls


def test_each_page_with_shortcuts_exists():
    names = {getattr(url, "name", None) for url in (*run_urls, *tool_urls)}

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
    assert list_shortcuts("home") == [ALL_PAGES]


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
        ("dataset-detail", ["Add an example"]),
        ("queue-item", ["Undo the last annotation"]),
        ("agent-edit", ["Move through the list of tools"]),
    ],
)
def test_pages_with_keys_of_their_own_list_them(page, words):
    own, *_ = list_shortcuts(page)

    assert {str(one.words) for one in own.shortcuts} >= set(words)
