"""Incoming webhooks: list, form, preview, the page of one, and its actions."""

import json

import pytest
from django.utils import timezone

from runs.forms.hook import HookForm
from runs.models import Hook, HookRequest
from runs.services.hooks.manage import rotate_hook_secret
from runs.services.webhooks.sign import get_current_secrets
from tests.make import make_agent, make_hook, make_prompt, make_run, make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

GOOD = {
    "name": "Issues",
    "scheme": "github",
    "secret": "",
    "input": "Triage {/issue/title}",
    "only_pointer": "/action",
    "only_value": "opened",
    "sample": "",
}
SAMPLE = json.dumps({"action": "opened", "issue": {"title": "Broken <b>"}})


def page_of(client, address: str) -> str:
    return client.get(address).content.decode()


def test_an_empty_list_explains_incoming_webhooks(client, ann):
    assert "No incoming webhooks yet" in page_of(client, "/hooks/")
    assert 'href="/hooks/"' in page_of(client, "/")


def test_the_list_has_own_hooks_only(client, ann):
    make_hook(ann, name="Mine")
    make_hook(name="Another")
    page = page_of(client, "/hooks/")

    assert "Mine" in page
    assert "Another" not in page


def test_agents_are_offered_first(client, ann):
    agent = make_agent(ann, name="Helper")
    make_agent(name="Secret one")
    page = page_of(client, "/hooks/new/")

    assert f'href="?agent={agent.pk}"' in page
    assert "Secret one" not in page


def test_a_new_hook_shows_address_and_secret_once(client, ann):
    agent = make_agent(ann)

    answer = client.post(f"/hooks/new/?agent={agent.pk}", GOOD)

    hook = Hook.objects.get()
    assert answer.headers["Location"] == f"/hooks/{hook.pk}/"
    assert (hook.owner, hook.agent, hook.inputs) == (
        ann,
        agent,
        {"input": "Triage {/issue/title}"},
    )
    secret = get_current_secrets(hook)[0]
    page = page_of(client, f"/hooks/{hook.pk}/")
    assert secret in page
    assert f"/in/{hook.key}/" in page
    assert secret not in page_of(client, f"/hooks/{hook.pk}/")


def test_each_variable_of_the_agent_has_a_field(client, ann):
    messages = [{"role": "user", "template": "{question} {place}"}]
    agent = make_agent(ann, prompt=make_prompt(ann, messages=messages))
    page = page_of(client, f"/hooks/new/?agent={agent.pk}")

    assert 'name="in-question"' in page
    assert 'name="in-place"' in page


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        pytest.param("name", "", "Enter a name.", id="no-name"),
        pytest.param("scheme", "x", "Select a valid choice", id="scheme"),
        pytest.param("secret", "short", "at least 16 characters", id="short-secret"),
        pytest.param("only_pointer", "action", "JSON pointer", id="pointer"),
        pytest.param("only_value", "", "value to compare", id="no-value"),
    ],
)
def test_invalid_input_is_explained_and_kept(client, ann, field, value, says):
    agent = make_agent(ann)

    answer = client.post(f"/hooks/new/?agent={agent.pk}", GOOD | {field: value})

    page = answer.content.decode()
    assert says in page
    assert "Triage {/issue/title}" in page
    assert not Hook.objects.exists()


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_sample_shows_the_inputs(client, ann, headers):
    agent = make_agent(ann)
    sent = GOOD | {"sample": SAMPLE}

    answer = client.post(f"/hooks/preview/{agent.pk}/", sent, headers=headers)

    page = answer.content.decode()
    assert "Triage Broken &lt;b&gt;" in page
    assert ("<html" in page) == (not headers)
    assert not Hook.objects.exists()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sample": "{"}, "not valid JSON"),
        ({"sample": "{}"}, "finds nothing"),
        ({"sample": SAMPLE, "only_value": "closed"}, "starts no run"),
        ({"sample": ""}, "Paste a sample payload"),
        ({"sample": SAMPLE, "only_pointer": "x"}, "JSON pointer"),
        ({"sample": f'"{"x" * 1_000_000}"'}, "at most 1000000 characters"),
        ({"sample": f'"{"x" * 1_000}"', "input": "{}" * 2_000}, "1,000,000 characters"),
    ],
)
def test_the_preview_says_what_is_wrong(client, ann, changes, says):
    agent = make_agent(ann)

    answer = client.post(f"/hooks/preview/{agent.pk}/", GOOD | changes)

    assert says in answer.content.decode()


def test_a_hook_is_edited_and_its_secret_replaced(client, ann):
    hook = make_hook(ann, scheme="slack")
    changes = GOOD | {"scheme": "slack", "secret": "the secret of slack"}

    client.post(f"/hooks/{hook.pk}/edit/", changes)

    edited = Hook.objects.get()
    assert (edited.name, edited.key) == ("Issues", hook.key)
    assert get_current_secrets(edited)[0] == "the secret of slack"
    assert len(get_current_secrets(edited)) == 2


def test_saving_keeps_a_secret_that_was_rotated_meanwhile(ann):
    hook = make_hook(ann, scheme="slack")
    form = HookForm(("input",), GOOD | {"scheme": "slack"}, instance=hook)
    secret = rotate_hook_secret(Hook.objects.get())

    assert form.is_valid()
    form.save()

    edited = Hook.objects.get()
    assert (edited.name, edited.inputs) == ("Issues", {"input": GOOD["input"]})
    assert get_current_secrets(edited)[0] == secret


def test_a_hook_is_paused_rotated_and_deleted_and_all_is_audited(client, ann):
    hook = make_hook(ann)
    client.post(f"/hooks/{hook.pk}/switch/", {"on": "0"})
    assert not Hook.objects.get().is_on
    before = get_current_secrets(hook)[0]
    client.post(f"/hooks/{hook.pk}/rotate/")
    secret = get_current_secrets(Hook.objects.get())[0]
    assert secret != before
    assert secret in page_of(client, f"/hooks/{hook.pk}/")
    assert "Its address stops working" in page_of(client, f"/hooks/{hook.pk}/delete/")
    client.post(f"/hooks/{hook.pk}/delete/")

    assert not Hook.objects.exists()
    rows = AuditEntry.objects.filter(noun="incoming webhook").order_by("pk")
    assert [row.action for row in rows][-3:] == ["changed", "rotated", "deleted"]


def test_the_page_shows_what_arrived(client, ann):
    hook = make_hook(ann)
    HookRequest.objects.create(
        hook=hook,
        outcome="refused",
        reason="The signature is <wrong>.",
        count=3,
        created_at=timezone.now(),
    )
    part = client.get(f"/hooks/{hook.pk}/", headers={"HX-Request": "true"})

    assert "The signature is &lt;wrong&gt;." in part.content.decode()
    assert "3 times" in part.content.decode()
    assert "<html" not in part.content.decode()


def test_the_part_reads_no_whole_runs(client, ann, django_assert_max_num_queries):
    hook, run = make_hook(ann), make_run(ann)
    HookRequest.objects.create(
        hook=hook, run=run, outcome="started", created_at=timezone.now()
    )
    with django_assert_max_num_queries(20) as queries:
        part = client.get(f"/hooks/{hook.pk}/", headers={"HX-Request": "true"})

    assert f"/runs/{run.pk}/" in part.content.decode()
    assert not any('"runs_run"' in one["sql"] for one in queries.captured_queries)


def test_hooks_of_others_are_not_found(client, ann):
    hook = make_hook(make_user("bea"))

    for verb in ("switch", "rotate", "delete", "edit"):
        assert client.post(f"/hooks/{hook.pk}/{verb}/").status_code == 404
    assert client.get(f"/hooks/{hook.pk}/").status_code == 404
