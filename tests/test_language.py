"""The language of pages: the user's setting, else the browser's."""

import pytest
from django.urls import reverse

from tests.make import make_user


@pytest.mark.django_db
def test_a_stranger_reads_the_browsers_language(client):
    page = client.get("/sign-in/", headers={"accept-language": "zh-CN,zh;q=0.9"})

    assert '<html lang="zh-hans"' in page.text
    assert page.headers["Content-Language"] == "zh-hans"


@pytest.mark.django_db
def test_an_unknown_language_falls_back_to_english(client):
    page = client.get("/sign-in/", headers={"accept-language": "xx"})

    assert '<html lang="en"' in page.text


@pytest.mark.django_db
def test_the_users_setting_wins_over_the_browser_and_survives_sign_out(client):
    user = make_user("ann")
    client.force_login(user)
    client.post(reverse("set-language"), {"language": "zh-hans", "next": "/"})
    client.logout()
    client.force_login(user)

    assert '<html lang="zh-hans"' in client.get("/").text


@pytest.mark.django_db
def test_an_empty_setting_follows_the_browser_again(client):
    client.force_login(make_user("ann"))
    client.post(reverse("set-language"), {"language": "zh-hans"})
    client.post(reverse("set-language"), {"language": ""})

    assert '<html lang="en"' in client.get("/").text


@pytest.mark.django_db
def test_an_unknown_setting_is_ignored(client):
    user = make_user("ann")
    client.force_login(user)
    client.post(reverse("set-language"), {"language": "tlh"})

    assert '<html lang="en"' in client.get("/").text
