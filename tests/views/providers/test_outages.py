"""Outages of providers on their pages."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import ProviderOutage, Run
from runs.services.providers.client import run_provider_test
from tests.fakes.model_server import model_server
from tests.make import make_provider, make_run, make_spec, make_user
from tests.views.providers.test_page import GOOD

pytestmark = pytest.mark.django_db


def make_outage(provider, **fields):
    now = timezone.now()
    defaults = {
        "started_at": now - timedelta(minutes=3),
        "probe_at": now + timedelta(seconds=20),
        "error_message": "No server answers at http://x/v1.",
    }
    return ProviderOutage.objects.create(provider=provider, **{**defaults, **fields})


def make_waiting_run(provider, owner):
    now = timezone.now()
    return make_run(
        owner,
        status="waiting",
        waiting_provider=provider,
        queued_at=now - timedelta(minutes=1),
        waiting_since=now,
    )


@pytest.mark.parametrize("path", ["/providers/", "/providers/{}/"])
def test_pages_show_the_outage_and_the_runs_that_wait(client, ann, path):
    provider = make_provider(ann)
    make_outage(provider)
    make_waiting_run(provider, ann)
    make_waiting_run(provider, make_user("bob"))

    page = client.get(path.format(provider.pk)).content.decode()

    assert "Unavailable" in page
    assert "1 run" in page
    assert "No server answers at http://x/v1." in page


def test_an_outage_of_a_model_is_named_as_such(client, ann):
    provider = make_provider(ann, name="Local")
    make_outage(provider, model="big")
    run = make_waiting_run(provider, ann)
    Run.objects.filter(pk=run.pk).update(spec=make_spec(model={"model": "big"}))
    make_waiting_run(provider, ann)

    listed = client.get("/providers/").content.decode()
    assert "big unavailable" in listed
    assert "1 run waiting" in " ".join(listed.split())
    page = client.get(f"/providers/{provider.pk}/").content.decode()
    assert "Model big has been" in page
    assert "Model big of Local is unavailable" in client.get("/").content.decode()
    waiting = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Local (big)" in waiting


def test_users_of_a_shared_provider_see_the_outage(client, ann):
    provider = make_provider(make_user("bob"), visibility="everyone")
    make_outage(provider)

    page = client.get(f"/providers/{provider.pk}/").content.decode()

    assert "Unavailable for" in page


def test_an_outage_that_has_ended_is_not_shown(client, ann):
    make_outage(make_provider(ann), ended_at=timezone.now())

    assert "Unavailable</span>" not in client.get("/providers/").content.decode()


def test_a_new_address_ends_the_outage(client, ann):
    provider = make_provider(ann)
    make_outage(provider)
    run = make_waiting_run(provider, ann)

    client.post(f"/providers/{provider.pk}/", GOOD | {"timeout": "61"})
    assert Run.objects.get(pk=run.pk).status == "waiting"
    client.post(f"/providers/{provider.pk}/", GOOD | {"base_url": "http://127.0.0.1:8"})
    assert Run.objects.get(pk=run.pk).status == "queued"


def test_a_successful_connection_test_ends_the_outage(ann):
    with model_server() as server:
        provider = make_provider(ann, base_url=server.base_url)
        make_outage(provider)
        run = make_waiting_run(provider, ann)

        assert run_provider_test(provider).ok

    assert Run.objects.get(pk=run.pk).status == "queued"
