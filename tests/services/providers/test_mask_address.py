"""What a run says of a provider that its owner may not see."""

import pytest
from django.db.models import TextField
from django.db.models.functions import Cast

from runs.models import ModelAttempt, Run
from runs.services.providers.mask_address import mask_provider_address
from runs.services.runs.start import start_run
from tests.make import make_agent, make_provider, make_user
from tests.support.servers import free_port
from tests.worker.run_parts import go_on

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Do not wait long between attempts."""
    monkeypatch.setattr("runs.llm.retry.BASE_DELAY", 0.01)


def failed_run_of(user, provider):
    agent = make_agent(provider.owner, provider=provider, visibility="everyone")
    run = go_on(start_run(agent, by=user, inputs={"input": "Go."}, draft=True))
    assert run.status == "failed"
    attempts = ModelAttempt.objects.filter(run=run).values_list("message", flat=True)
    return " ".join([run.error_message, *attempts])


@pytest.fixture
def provider():
    """A provider without a server, whose runs do not wait for it."""
    base_url = f"http://127.0.0.1:{free_port()}/v1"
    return make_provider(base_url=base_url, slug="internal", outage_minutes=0)


def test_a_user_of_a_shared_agent_reads_no_address(provider):
    message = failed_run_of(make_user(), provider)

    assert "127.0.0.1" not in message
    assert "internal" not in message
    assert "No server answers at [hidden]." in message


def test_the_address_is_hidden_in_the_parts_of_a_translated_error_too(provider):
    failed_run_of(make_user(), provider)

    stored = Run.objects.values_list(Cast("error_message", TextField()), flat=True)

    assert "127.0.0.1" not in stored[0]
    assert "internal" not in stored[0]
    assert Run.objects.get().error_message.parts[0].values == {
        "server": "[hidden]",
        "provider": "[hidden]",
    }


def test_those_who_may_see_the_provider_read_its_address(provider):
    assert provider.base_url in failed_run_of(provider.owner, provider)
    provider.visibility = "everyone"
    provider.save()

    assert provider.base_url in failed_run_of(make_user(), provider)


def test_an_archived_provider_is_not_named(provider):
    agent = make_agent(provider.owner, provider=provider, visibility="everyone")
    run = start_run(agent, by=make_user(), inputs={"input": "Go."}, draft=True)
    type(provider).objects.update(archived_at="2026-01-01T00:00:00Z")

    assert go_on(run).error_message.startswith("The provider [hidden] is archived.")


@pytest.mark.parametrize(
    ("message", "masked"),
    [
        ("https://LLM.corp:8443/v1 redirects to 'http://10.0.0.1/x'.", 2),
        ("Host 'llm.corp' not found.", 1),
        ("The certificate of 'llm.corp' is not valid for 10.2.3.4:8443.", 2),
    ],
)
def test_hosts_and_addresses_are_hidden(message, masked):
    provider = make_provider(base_url="https://llm.corp:8443/v1")

    text = mask_provider_address(message, provider)

    assert text.count("[hidden]") == masked
    assert "corp" not in text.lower()
    assert "10." not in text
