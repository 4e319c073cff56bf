"""The page of an imported run, which can only be looked at."""

import pytest
from django.test import Client

from runs.models import Run
from runs.services.telemetry.importing.protobuf import parse_protobuf_spans
from runs.services.telemetry.importing.store import import_spans
from tests.make import make_user
from tests.makers.traces import agent_span, as_protobuf, weather_trace

pytestmark = pytest.mark.django_db


def get_page(run: Run, path: str = "") -> str:
    client = Client()
    client.force_login(run.owner)
    return client.get(f"/runs/{run.pk}/{path}", follow=True).content.decode()


def receive(*spans) -> Run:
    import_spans(parse_protobuf_spans(as_protobuf(list(spans))), by=make_user())
    return Run.objects.get()


def test_shows_steps_and_offers_nothing_that_would_execute_it():
    page = get_page(receive(*weather_trace()), "?step=1")

    assert "another program executed this run" in page
    assert "get_weather" in page
    assert "Add to dataset" in page
    for action in ("fork/", "again/", "resume/", "export/scenario/", "stop/"):
        assert f"/{action}" not in page


def test_a_failed_one_shows_its_error_and_no_way_to_continue():
    page = get_page(receive(agent_span(1, error="The service is closed.")))

    assert "The service is closed." in page
    assert "What you can do" not in page
    assert "/resume/" not in page


@pytest.mark.parametrize("path", ["again/", "fork/1/", "resume/", "export/scenario/"])
def test_urls_of_actions_lead_back_to_the_run(path):
    run = receive(agent_span(1, error="No."), *weather_trace()[1:])

    page = get_page(run, path)

    assert "another program executed this run" in page
    assert Run.objects.count() == 1


@pytest.mark.parametrize("tab", ["prompt", "request", "response"])
def test_prompt_and_raw_texts_claim_nothing_about_what_was_sent(tab):
    page = get_page(receive(*weather_trace()), f"?step=1&tab={tab}")

    assert "Is it raining in Paris?" in page
    assert "exactly what was sent" not in page
    assert "stored digest" not in page


def test_is_found_by_its_source(client):
    run = receive(*weather_trace())
    client.force_login(run.owner)

    assert "raining" in client.get("/runs/?source=import").content.decode()
    assert "raining" not in client.get("/runs/?source=api").content.decode()
