"""The page *Use from code*: examples for this agent, and tokens beside them."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import ApiToken, Run
from runs.services.accounts.tokens import create_token
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import (
    make_agent,
    make_call,
    make_prompt,
    make_run,
    make_user,
    make_version,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return make_user("ann")


@pytest.fixture
def agent(ann):
    words = [{"role": "user", "content": "", "template": "{input} in {city}"}]
    prompt = make_prompt(ann, messages=[{k: v for k, v in words[0].items() if v}])
    return make_agent(
        ann, slug="helper", prompt=prompt, suggested_questions=["What's up?"]
    )


@pytest.fixture
def browser(ann):
    client = Client()
    client.force_login(ann)
    return client


def example_of(page: str) -> str:
    """Return the example as a person copies it."""
    found = re.search(r'<pre class="code">(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return html.unescape(re.sub(r"<[^>]+>", "", found[1]))


def response_of(page: str) -> str:
    """Return the response that is shown."""
    found = re.search(r'<pre class="code respc"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return html.unescape(re.sub(r"<[^>]+>", "", found[1]))


def show(browser, agent, query="", **headers):
    answer = browser.get(f"/agents/{agent.pk}/code/{query}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("language", ["curl", "python", "javascript"])
def test_an_example_has_address_message_and_variables(browser, agent, language):
    code = example_of(show(browser, agent, f"?lang={language}"))

    assert "http://localhost:8000/v1" in code
    assert '"helper"' in code
    assert '"city": "<city>"' in code
    assert "AGENTSITE_TOKEN" in code
    assert "stream" not in code.replace("completions", "")


def test_a_version_is_pinned_and_has_its_own_variables(browser, agent):
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    make_version(agent)

    first = example_of(show(browser, agent, "?version=1&stream=1"))
    newest = example_of(show(browser, agent))

    assert '"helper@1"' in first
    assert "stream=True" in first
    assert '"<city>"' in first
    assert '"helper"' in newest
    assert "city" not in newest


def send(browser, agent, query="?lang=python", **fields):
    return browser.post(f"/agents/{agent.pk}/code/send/{query}", fields)


def test_the_example_is_sent_from_the_page_and_its_response_shown(browser, ann, agent):
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    make_version(agent)
    form = {"input": "What's up?", "in-city": "Lima"}

    answer = send(browser, agent, "?lang=curl&version=1&stream=1", **form)

    run = Run.objects.get()
    assert (run.owner, run.version.number) == (ann, 1)
    assert run.inputs == {"input": "What's up?", "city": "Lima"}
    there, _, anchor = answer.headers["Location"].partition("#")
    assert anchor == "agent-response"
    waiting = browser.get(there).content.decode()
    assert 'hx-select="#agent-response"' in waiting
    assert example_of(waiting).startswith("curl")

    make_call(run, first_token=0.4)
    now = timezone.now()
    times = {"started_at": now - timedelta(seconds=3), "ended_at": now}
    Run.objects.update(status="succeeded", output="Not much.", cost="0.25", **times)
    page = browser.get(there).content.decode()
    assert "hx-select" not in page
    assert "HTTP 200" in page
    assert "3.0 s" in page
    assert "$0.25" in page
    assert "First token after 0.4" in page
    body = json.loads(response_of(page))
    assert body["choices"][0]["message"]["content"] == "Not much."
    assert (body["model"], body["id"]) == ("helper@1", f"chatcmpl-{run.pk}")


def test_a_failed_example_shows_the_error_that_its_caller_gets(browser, ann, agent):
    run = make_run(ann, agent=agent, status="failed", error_code="model_refused")

    page = show(browser, agent, f"?run={run.pk}")

    assert "HTTP 500" in page
    assert json.loads(response_of(page))["error"]["code"] == "model_refused"


def test_the_message_of_the_example_is_filled_in(browser, agent):
    page = show(browser, agent)

    assert re.search(r"<textarea[^>]*id=\"send_input\"[^>]*>\s*What&#x27;s up\?<", page)
    assert "code/send/" not in show(browser, agent, "?lang=mcp")


def test_what_cannot_be_sent_is_refused_at_its_field(browser, ann, agent, settings):
    both = {"input": "Hi", "in-city": "Lima"}
    missing = send(browser, agent, input="Hi").content.decode()
    settings.USER_RUNS = 1
    make_run(ann)
    limited = send(browser, agent, **both).content.decode()

    assert 'id="send_in-city-error"' in missing
    assert "unfinished run" in limited
    assert Run.objects.count() == 1


def test_the_response_of_a_run_of_somebody_else_is_not_shown(browser, agent):
    run = make_run(make_user(), status="succeeded", output="Secret.")

    assert "Secret" not in show(browser, agent, f"?run={run.pk}")


def test_a_draft_is_marked(browser, agent):
    assert "Not published: runs the draft" in show(browser, agent)


def test_htmx_gets_the_example_only(browser, agent):
    page = show(browser, agent, "?lang=curl", **{"HX-Request": "true"})

    assert page.lstrip().startswith('<section class="card" id="agent-code"')


def test_the_mcp_configuration_says_whether_the_agent_is_offered(browser, agent):
    config = json.loads(example_of(show(browser, agent, "?lang=mcp")))
    assert config["mcpServers"]["agentsite"]["url"] == "http://localhost:8000/mcp"
    page = show(browser, agent, "?lang=mcp")
    assert "not offered to programs" in page

    agent.is_offered = True
    agent.save()
    assert "not offered to programs" not in show(browser, agent, "?lang=mcp")


def test_agents_of_strangers_and_archived_ones_have_no_page(browser, ann):
    old = make_agent(ann, archived_at=timezone.now())

    for agent in (make_agent(), old):
        assert browser.get(f"/agents/{agent.pk}/code/").status_code == 404


def test_a_token_is_created_beside_the_example_and_shown_once(browser, ann, agent):
    page = f"/agents/{agent.pk}/code/?lang=curl"
    body = {"name": "bot", "scopes": ["read", "run"], "days": "30", "next": page}

    answer = browser.post("/account/tokens/", body)

    assert answer.headers["Location"] == page
    token = ApiToken.objects.get(user=ann)
    assert token.scopes == "read run"
    assert "It is not shown again." in browser.get(page).content.decode()
    assert "It is not shown again." not in browser.get(page).content.decode()


def test_a_form_does_not_lead_to_another_site(browser, ann):
    create_token(ann)
    pk = ApiToken.objects.get().pk
    there = {"next": "https://evil.example/"}

    for path, body in (
        ("/account/tokens/", {"name": "a", "scopes": ["read"], "days": "0"}),
        (f"/account/tokens/{pk}/revoke/", {"sure": "1"}),
    ):
        answer = browser.post(path, {**body, **there})
        assert answer.headers["Location"] == "/account/tokens/"
