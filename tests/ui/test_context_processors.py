"""What stands around every page."""

import pytest

from tests.make import make_worker

pytestmark = pytest.mark.django_db


def test_places_that_a_narrow_bar_has_no_room_for_are_under_more(client, ann):
    page = client.get("/prompts/").content.decode()
    bar, menu = page.split('<nav aria-label="Main">')[1].split("<details")[:2]

    bar = " ".join(bar.split())
    folded = '<a href="/prompts/" class="folds" data-jump="p" aria-current="page">'
    assert folded in bar
    assert '<a href="/chat/" data-jump="c" >Chat</a>' in bar
    assert 'href="/prompts/" aria-current="page"' in menu
    assert 'href="/chat/"' not in menu.split("</details>")[0]


def test_the_workers_are_marked_under_more_on_a_phone(client, ann):
    bar = client.get("/workers/").content.decode().split('id="part-tabbar"')[1]

    assert '<a href="/workers/" aria-current="page">' in bar


def test_the_health_is_said_in_words_in_a_narrow_bar_too(client, ann):
    make_worker()

    page = client.get("/").content.decode()

    assert '<span class="whole-words">1 worker, idle, queue empty</span>' in page
    assert '<span class="few-words">1 worker</span>' in page


@pytest.mark.parametrize(
    "kind", ["agents", "providers", "prompts", "schedules", "webhooks"]
)
def test_an_empty_list_has_one_button_that_makes_the_first(client, ann, kind):
    button = f'<a class="btn primary" href="/{kind}/new/">'

    assert client.get(f"/{kind}/").content.decode().count(button) == 1
