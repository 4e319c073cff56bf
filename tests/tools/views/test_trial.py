"""The pane that tests a tool: its arguments, what it shows, and who sees it."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import translation
from django.utils.translation import trans_real

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.rows import make_tool, make_user
from tools.forms.arguments import MAX_FILE_BYTES
from tools.models import AuditEntry
from tools.registry import find_function
from tools.services.try_tool import NEEDS_APPROVAL, NOT_YOURS, STOPPED, TryResult
from tools.views.trial_pane import open_trial_pane

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    one = Client()
    one.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return one


def shown(client, tool):
    response = client.get(f"/tools/{tool.slug}/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def tried(client, tool, **given):
    """Return the page after a call; one with side effects is confirmed."""
    path = f"/tools/{tool.slug}/try/"
    word = client.get(f"/tools/{tool.slug}/").context["pane"].confirmation
    return client.post(path, {"confirmed": word, **given})


def test_a_tool_is_tried_with_a_form_of_its_arguments(client):
    tool = make_tool()

    assert 'name="arg-a"' in shown(client, tool)
    page = tried(client, tool, **{"arg-a": "40", "arg-b": "2"}).content.decode()

    assert '<pre class="code" id="tool-result-text">42</pre>' in page
    assert 'data-copy="#tool-result-text"' in page
    assert re.search(r'<span class="small muted">\s*[\d.]+ m?s', page)


def test_each_argument_says_what_it_takes(client):
    tool = make_tool(
        kind="http",
        config={"method": "GET", "url": "https://api.example.com/"},
        args_schema={
            "type": "object",
            "properties": {"free": {}, "tags": {"type": "array", "items": {}}},
            "required": ["free"],
        },
    )

    page = shown(client, tool)

    free, tags = ('<span class="mono">free</span>', '<span class="mono">tags</span>')
    kind = '<span class="faint">{}</span>'
    assert f"{free} {kind.format('any value')} </label>" in page
    assert f"{tags} {kind.format('list')} {kind.format('optional')}" in page


def test_the_request_is_previewed_without_a_call(client):
    tool = make_tool(config={"function": "tests.tools.functions:raises"})

    page = tried(client, tool, **{"arg-what": "value", "preview": "1"})

    assert "tests.tools.functions:raises" in page.content.decode()
    assert "Nothing was sent." in page.content.decode()
    assert page.context["pane"].result is None
    assert not AuditEntry.objects.filter(action="tried").exists()


def test_a_trial_is_in_the_audit_log(client):
    tried(client, make_tool(), **{"arg-a": "40", "arg-b": "2"})

    entry = AuditEntry.objects.get(action="tried")
    assert (entry.by, entry.changes) == (
        "admin",
        {"arguments": [None, {"a": 40, "b": 2}]},
    )


@pytest.mark.parametrize("name", ["count_bytes", "count_isolated"])
def test_a_file_is_selected_for_an_argument_of_bytes(client, name):
    function = find_function(f"tests.tools.functions:{name}")
    config = {"function": function.path}
    tool = make_tool(config=config, effect="read", args_schema=function.args_schema)

    page = shown(client, tool)
    assert 'type="file" name="arg-data"' in page
    assert 'enctype="multipart/form-data"' in page
    file = SimpleUploadedFile("a.bin", b"\xff\x00\x01")
    pane = tried(client, tool, **{"arg-data": file}).context["pane"]

    assert pane.result.ok
    assert "3" in pane.result.value_text
    large = SimpleUploadedFile("b.bin", bytes(MAX_FILE_BYTES + 1))
    refused = tried(client, tool, **{"arg-data": large}).context["pane"]
    assert refused.result is None
    assert "at most 1.0" in str(refused.arguments.errors)
    assert "data" in tried(client, tool).context["pane"].arguments.errors


def test_the_error_of_the_tool_is_shown(client):
    tool = make_tool(config={"function": "tests.tools.functions:raises"})

    page = tried(client, tool, **{"arg-what": "value"}).content.decode()

    assert "ValueError: the order is unknown" in page


def test_a_wrong_argument_is_named_at_its_field(client):
    page = tried(client, make_tool(), **{"arg-a": "x", "arg-b": ""}).content.decode()

    assert "Enter a whole number." in page
    assert "Enter a value for" in page


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("python", "Runs the code in its sandbox"),
        ("sql", "Queries the database"),
        ("http", "Sends a real request"),
        ("function", "Calls the function"),
    ],
)
def test_the_pane_says_what_the_kind_does(client, kind, words):
    assert words in shown(client, make_tool(kind=kind))


def test_staff_who_may_see_a_tool_test_it_as_it_is_saved():
    tool = make_tool(name="shared", visibility="everyone", effect="read")
    bob = make_user("bob", is_staff=True)
    bob.user_permissions.set(Permission.objects.filter(codename="view_tool"))
    client = Client()
    client.force_login(bob)

    page = shown(client, tool)
    assert 'name="arg-a"' in page
    assert 'id="tool-form"' not in page
    typed = {"name": "x", "function": "tests.tools.functions:raises"}
    answer = tried(client, tool, **typed, **{"arg-a": "4", "arg-b": "3"})

    assert answer.context["pane"].result.value_text == "7"
    assert 'id="tool-form"' not in answer.content.decode()


def test_an_error_shows_no_code_to_people_who_cannot_see_it():
    config = {"code": "int('hidden')"}
    tool = make_tool(name="shared", kind="python", visibility="everyone", config=config)
    bob = make_user("bob", is_staff=True)
    bob.user_permissions.set(Permission.objects.filter(codename="view_tool"))
    client = Client()
    client.force_login(bob)

    pane = tried(client, tool).context["pane"]

    assert pane.result.error_line == 1
    assert pane.failed_lines == [(1, "")]


def test_testing_is_no_way_around_an_approval():
    more = {"visibility": "everyone", "effect": "read", "approval": "always"}
    tool = make_tool(name="shared", **more)
    bob = make_user("bob", is_staff=True)
    bob.user_permissions.set(Permission.objects.filter(codename="view_tool"))
    client = Client()
    client.force_login(bob)

    result = tried(client, tool, **{"arg-a": "4", "arg-b": "3"}).context["pane"].result

    assert (result.ok, "requires an approval" in result.error) == (False, True)
    assert not AuditEntry.objects.filter(action="tried").exists()


@pytest.mark.parametrize("refusal", [STOPPED, NOT_YOURS, NEEDS_APPROVAL])
def test_why_a_call_was_not_made_is_translated(monkeypatch, refusal):
    catalog = trans_real.translation("zh-hans")
    monkeypatch.setattr(catalog, "gettext", lambda text: f"译 {text}")
    pane = open_trial_pane(make_tool(), url="", user=make_user("bob"))
    pane.result = TryResult("", refusal, 0.0)

    with translation.override("zh-hans"):
        assert pane.model_text == f"译 {refusal}"
    assert pane.model_text == refusal


def test_people_who_are_not_staff_see_no_test():
    tool = make_tool(visibility="everyone")
    client = Client()
    client.force_login(make_user("eve"))

    assert 'id="tool-try"' not in shown(client, tool)
    assert client.post(f"/tools/{tool.slug}/try/").status_code == 403


def switched(client, tool, **given):
    """Return the pane as htmx gets it after a switch, or after a call."""
    response = client.post(
        f"/tools/{tool.slug}/try/", given, headers={"HX-Request": "true"}
    )
    assert response.status_code == 200
    return response


def test_the_arguments_are_typed_as_json_instead(client):
    tool = make_tool()
    assert 'name="switch_to" value="json"' in shown(client, tool)

    page = switched(client, tool, switch_to="json", **{"arg-a": "40", "arg-b": "2"})
    text = page.context["pane"].arguments["json"].value()
    called = tried(client, tool, arguments_as="json", **{"arguments-json": text})

    assert 'name="arguments_as" value="json"' in page.content.decode()
    assert called.context["pane"].result.value_text == "42"
    assert called.context["pane"].is_json
    assert AuditEntry.objects.filter(action="tried").count() == 1


def test_the_page_without_a_script_switches_to_json_too(client):
    path = f"/tools/{make_tool().slug}/try/"

    page = client.post(path, {"switch_to": "json", "arg-a": "40"})

    assert 'id="tool-form"' in page.content.decode()
    assert 'name="arguments-json"' in page.content.decode()
    assert "&quot;a&quot;: 40" in page.content.decode()


def test_json_is_turned_back_into_fields(client):
    text = '{"a": 40, "b": 2}'
    given = {"arguments_as": "json", "arguments-json": text}

    page = switched(client, make_tool(), switch_to="form", **given).content.decode()

    assert 'name="arg-a"' in page
    assert 'value="40"' in page
    assert 'name="arguments-json"' not in page


def test_invalid_json_is_explained_at_its_place_and_nothing_is_called(client):
    tool, text = make_tool(), '{"a": 40,\n "b" 2}'

    given = {"arguments_as": "json", "arguments-json": text}
    for more in ({"switch_to": "form"}, {"preview": "1"}, {}):
        response = switched(client, tool, **given, **more)
        page, pane = response.content.decode(), response.context["pane"]
        assert "Line 2, column 6" in page
        assert 'aria-invalid="true"' in page
        assert pane.arguments["json"].value() == text
        assert pane.result is None


def test_json_is_kept_while_the_schema_is_edited_and_takes_earlier_values(client):
    tool = make_tool()
    tried(client, tool, **{"arg-a": "40", "arg-b": "2"})
    trial = tool.trials.get()
    given = {"arguments_as": "json", "arguments-json": "{"}

    refreshed = switched(client, tool, refresh="1", **given).context["pane"]
    loaded = switched(client, tool, trial=trial.pk, **given).context["pane"]

    assert refreshed.arguments["json"].value() == "{"
    assert not refreshed.arguments.is_checked
    assert loaded.arguments["json"].value() == '{\n  "a": 40,\n  "b": 2\n}'


def test_the_variables_of_failed_code_are_shown_without_secrets(client):
    config = {"code": "left = days - 3\ntoken = 'abcdef'\ndays / left"}
    schema = {"type": "object", "properties": {"days": {"type": "integer"}}}
    tool = make_tool(kind="python", config=config, args_schema=schema)

    response = tried(client, tool, **{"arg-days": "3"})
    page = " ".join(response.content.decode().split())

    assert "Variable on line 3" in page
    assert '<td class="mono">left</td><td class="mono fill">0</td>' in page
    assert '<td class="mono">token</td><td class="mono fill">[secret]</td>' in page
    assert "abcdef" not in page.partition('id="tool-result"')[2]
    model_text = response.context["pane"].model_text
    assert model_text == "Line 3: ZeroDivisionError: division by zero"


def test_the_result_has_its_size_in_characters_and_tokens(client):
    tool = make_tool(kind="python", config={"code": "'word' * 400", "memory_mb": 64})

    page = " ".join(tried(client, tool).content.decode().split())

    assert "1,600 characters, about 401 tokens" in page


def test_a_large_result_says_what_is_shown_and_what_the_model_gets(client):
    tool = make_tool(kind="python", config={"code": "'word' * 50_000"})

    page = " ".join(tried(client, tool).content.decode().split())

    assert "200,000 characters, about 50,001 tokens" in page
    assert "This page shows the first 100,000 characters. In a run, the" in page
    assert "word" * 25_000 in page
    assert "word" * 25_001 not in page


def test_a_failed_try_says_how_often_a_run_would_retry(client):
    code = {"code": "1 / 0", "memory_mb": 64}
    given = {"kind": "python", "config": code, "effect": "read"}
    for retries, words in ((1, "retry 1 time<"), (2, "retry up to 2 times<")):
        tool = make_tool(name=f"fails_{retries}", retries=retries, **given)
        page = " ".join(tried(client, tool).content.decode().split())
        assert f"1 attempt; a run would {words}" in page


def test_a_failed_try_with_side_effects_promises_no_retry(client):
    code = {"code": "1 / 0", "memory_mb": 64}
    tool = make_tool(kind="python", config=code, effect="side_effect", retries=2)

    page = tried(client, tool).content.decode()

    assert "ZeroDivisionError" in page
    assert "a run would retry" not in page
