"""The page of what a user owns."""

import pytest

from tests.make import make_agent, make_prompt, make_user

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
