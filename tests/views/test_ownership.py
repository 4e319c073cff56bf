"""The page of what a user owns."""

import pytest

from runs.models import DeletionJob
from tests.make import make_agent, make_prompt, make_run, make_user

pytestmark = pytest.mark.django_db


def test_administrators_see_and_move_what_somebody_owns(client):
    eve, ada = make_user("eve"), make_user("ada")
    prompt = make_prompt(eve, name="Words")
    url = f"/users/{eve.pk}/owned/"
    client.force_login(ada)
    assert client.get(url).status_code == 403
    assert client.post(url, {"to": ada.pk}).status_code == 403

    client.force_login(make_user("root", is_superuser=True, is_staff=True))
    assert url in client.get(f"/admin/auth/user/{eve.pk}/change/").content.decode()
    assert "Words" in client.get(url).content.decode()
    assert "Select" in client.post(url, {"to": eve.pk}).content.decode()

    page = client.post(url, {"to": ada.pk}, follow=True).content.decode()
    prompt.refresh_from_db()
    assert prompt.owner == ada
    assert "1 object now belongs to ada." in page
    assert "owns no definitions" in page


def test_the_page_says_what_deactivating_does_not_stop(client):
    eve = make_user("eve")
    client.force_login(make_user("root", is_superuser=True, is_staff=True))
    url = f"/users/{eve.pk}/owned/"
    assert "Not stopped by deactivating" not in client.get(url).content.decode()

    make_agent(eve, name="Desk", visibility="everyone")

    page = client.get(url).content.decode()
    assert "Not stopped by deactivating" in page
    assert "others can still run these agents" in page


def test_erasing_needs_an_administrator_and_the_name(client):
    eve, root = make_user("eve"), make_user("root", is_superuser=True, is_staff=True)
    make_run(eve, status="succeeded")
    url = f"/users/{eve.pk}/erase/"
    client.force_login(eve)
    assert client.get(url).status_code == 403
    assert client.post(url, {"username": "eve"}).status_code == 403

    client.force_login(root)
    assert url in client.get(f"/admin/auth/user/{eve.pk}/change/").content.decode()
    page = client.get(url).content.decode()
    assert "<dt>Runs</dt><dd>1</dd>" in page
    assert "<dt>Agents</dt><dd>1</dd>" in page
    page = client.post(url, {"username": "Eve"}).content.decode()
    assert "This is not the name of the user: eve." in page
    eve.refresh_from_db()
    assert eve.is_active

    page = client.post(url, {"username": "eve"}, follow=True).content.decode()
    assert "The account of eve is closed." in page
    assert "Erasing a person" in page
    eve.refresh_from_db()
    assert not eve.is_active
    assert DeletionJob.objects.get().by == root


def test_the_page_names_what_needs_a_new_owner(client):
    eve = make_user("eve")
    make_run(make_user(), agent=make_agent(eve, name="Desk"))
    client.force_login(make_user("root", is_superuser=True, is_staff=True))
    url = f"/users/{eve.pk}/erase/"

    assert "they need a new owner: Desk" in client.get(url).content.decode()
    page = client.post(url, {"username": "eve"}).content.decode()
    assert "Others use Desk. Select a new owner." in page
    assert not DeletionJob.objects.exists()
