"""Lists that are kept."""

from urllib.parse import urlencode

import pytest

from runs.models import SavedFilter
from tests.make import make_user

pytestmark = pytest.mark.django_db


def keep(client, name, query="status=failed&cost=0.1"):
    body = {"name": name, "query": query}
    return client.post("/runs/filters/new/", body, follow=True).content.decode()


def test_keeps_a_list_and_shows_it(client, ann):
    page = keep(client, "Dear failures", "status=failed&cost=0.1&before=7&nonsense=1")

    assert SavedFilter.objects.get().query == "status=failed&cost=0.1"
    assert "Dear failures" in page
    assert "Delete filter" in page


def test_the_same_name_is_replaced(client, ann):
    keep(client, "Mine")
    keep(client, "Mine", "mine=1")

    assert SavedFilter.objects.get().query == "mine=1"


@pytest.mark.parametrize(
    ("name", "query", "sentence"),
    [
        ("", "status=failed", "Enter a name"),
        ("x" * 61, "status=failed", "Enter a name"),
        ("All", "", "Set a filter first"),
        ("All", "q=%00", "Set a filter first"),
    ],
)
def test_refuses_with_a_sentence(client, ann, name, query, sentence):
    assert sentence in keep(client, name, query)
    assert not SavedFilter.objects.exists()


def test_removes_ones_own_only(client, ann):
    others = SavedFilter.objects.create(owner=make_user(), name="x", query="mine=1")
    own = SavedFilter.objects.create(owner=ann, name="x", query="mine=1")

    assert client.post(f"/runs/filters/{others.pk}/delete/").status_code == 404
    client.post(f"/runs/filters/{own.pk}/delete/")

    assert list(SavedFilter.objects.all()) == [others]


def test_hides_what_is_someone_elses(client, ann):
    SavedFilter.objects.create(owner=make_user(), name="Secret list", query="mine=1")

    assert "Secret list" not in client.get("/runs/").content.decode()


def test_a_list_that_is_too_long_is_refused_and_not_cut(client, ann):
    asked = {"q": "雨" * 90, "model": "m" * 100, "tool": "t" * 200}

    page = keep(client, "rain", urlencode(asked))
    assert "too long to save" in page
    assert not SavedFilter.objects.exists()
