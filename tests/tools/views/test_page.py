"""The page of a tool: who may edit and test it, and with which values."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils.html import strip_tags

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_tool, make_user
from tools.definition.save import save_tool
from tools.models import AuditEntry, Credential, Tool, ToolTrial
from tools.secrets import seal
from tools.services.try_tool import KEPT_TRIALS

pytestmark = pytest.mark.django_db

DOUBLE = {"code": "x * 2", "memory_mb": 64}
ONE_NUMBER = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
}
PYTHON = {
    **{"name": "twice", "slug": "twice", "description": "", "code": "x * 2"},
    **{"memory_mb": "64", "interpreter": "monty", "effect": "read"},
    **{"approval": "never", "timeout": "5", "retries": "0", "on_error": "feed_back"},
    **{"visibility": "private", "args_schema-shape": "rows", "args_schema-count": "1"},
    **{"args_schema-0-name": "x", "args_schema-0-type": "integer"},
    **{"args_schema-0-required": "on"},
}
"""The form of a Python tool as a browser sends it."""

HTTP = {
    **{"name": "shop", "slug": "", "description": "", "method": "GET"},
    **{"approval": "never", "timeout": "5", "retries": "0", "on_error": "feed_back"},
    **{"visibility": "private", "body_kind": "arguments", "effect": ""},
    **{"args_schema-shape": "rows", "args_schema-count": "0"},
}


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


def admin():
    return make_user("admin", is_staff=True, is_superuser=True)


def make_twice(**more):
    return make_tool(
        **{
            **{"name": "twice", "slug": "twice", "kind": "python", "config": DOUBLE},
            **{"args_schema": ONE_NUMBER, "effect": "read", "approval": "never"},
            **{"timeout": 5.0, "owner": admin(), **more},
        }
    )


def save_as(name, **changes):
    """Save the tool with changes by another person."""
    tool = Tool.objects.get()
    for field, value in changes.items():
        setattr(tool, field, value)
    return save_tool(tool, by=make_user(name))


def read_draft(response):
    """Return the name of the form of a new tool."""
    return re.search(r'name="draft" value="(\w+)"', response.text)[1]


def tried(client, path="/tools/twice/try/", **typed):
    """Return the pane after a call."""
    response = client.post(path, typed, headers={"HX-Request": "true"})
    assert response.status_code == 200
    return response.context["pane"]


def test_the_form_saves_a_revision_with_a_note():
    save_tool(make_twice(), by=admin())
    changes = {"code": "x * 3", "note": "three times", "seen": "1"}

    response = client_of(admin()).post("/tools/twice/", {**PYTHON, **changes})

    assert response.status_code == 302
    tool = Tool.objects.get()
    assert (tool.config["code"], tool.revision, tool.enabled) == ("x * 3", 2, True)
    assert tool.revisions.get(number=2).note == "three times"
    assert AuditEntry.objects.filter(noun="tool", action="changed").exists()


def test_a_form_opened_before_somebody_else_saved_is_refused_once():
    save_tool(make_twice(), by=admin())
    client, typed = client_of(admin()), {**PYTHON, "code": "x * 3"}
    save_as("lin", description="Theirs.")

    page = client.post("/tools/twice/", {**typed, "seen": "1"}).text

    assert "Somebody saved this tool since you opened it" in page
    assert 'name="seen" value="2"' in page
    assert client.post("/tools/twice/", {**typed, "seen": "2"}).status_code == 302
    assert Tool.objects.get().description == ""


def test_a_refused_form_shows_who_saved_what_it_would_overwrite():
    save_tool(make_twice(), by=admin())
    save_as("lin", description="Theirs.")
    typed = {**PYTHON, "code": "x * 3", "description": "Mine.", "seen": "1"}

    page = client_of(admin()).post("/tools/twice/", typed).text

    shown = page.partition('id="tool-other-save"')[2].partition("</section>")[0]
    assert "lin saved" in shown
    assert 'href="/tools/twice/revisions/#revision-2"' in shown
    assert "<del>Theirs.</del> → <ins>Mine.</ins>" in shown
    assert "x * 3" not in shown


def test_a_form_that_undoes_nothing_is_saved_after_somebody_else():
    save_tool(make_twice(), by=admin())
    save_as("lin", enabled=False)

    saved = client_of(admin()).post("/tools/twice/", {**PYTHON, "seen": "1"})

    assert saved.status_code == 302


def test_the_typed_values_are_called_and_not_saved():
    make_twice()

    pane = tried(client_of(admin()), **{**PYTHON, "code": "x + 1", "arg-x": "20"})

    assert (pane.result.value_text, pane.is_unsaved) == ("21", True)
    assert Tool.objects.get().config == DOUBLE
    trial = ToolTrial.objects.get()
    assert (trial.arguments, trial.is_unsaved, trial.is_ok) == ({"x": 20}, True, True)
    called = AuditEntry.objects.get(action="tried").changes
    assert called["unsaved definition"][1]["config"]["code"] == "x + 1"


def test_unchanged_values_are_those_of_the_revision():
    make_twice()

    pane = tried(client_of(admin()), **{**PYTHON, "arg-x": "20"})

    assert (pane.result.value_text, pane.is_unsaved) == ("40", False)
    assert "unsaved definition" not in AuditEntry.objects.get(action="tried").changes


def test_without_the_form_the_saved_tool_is_called():
    make_twice()

    assert tried(client_of(admin()), **{"arg-x": "4"}).result.value_text == "8"


def test_without_a_script_the_page_shows_the_result():
    make_twice()

    page = client_of(admin()).post("/tools/twice/try/", {"arg-x": "21"})

    assert 'id="tool-form"' in page.content.decode()
    assert 'id="tool-result-text">42<' in page.content.decode()


def test_a_form_with_errors_is_not_called():
    make_twice()

    pane = tried(client_of(admin()), **{**PYTHON, "code": "x = = 1", "arg-x": "1"})

    assert (pane.result, [one.field.name for one in pane.flaws]) == (None, ["code"])
    assert not AuditEntry.objects.filter(action="tried").exists()


def test_an_error_of_the_code_names_its_line():
    make_twice()
    typed = {**PYTHON, "code": "y = x\ny / 0", "arg-x": "1"}

    pane = tried(client_of(admin()), **typed)

    assert pane.result.error_line == 2
    assert pane.failed_lines == [(2, "y / 0")]
    assert ToolTrial.objects.get().error_line == 2


def test_an_error_is_shown_with_the_lines_that_led_to_it():
    make_twice(config={"code": "def halve(n):\n    return n / 0\n\nhalve(x)"})

    response = client_of(admin()).post("/tools/twice/try/", {"arg-x": "4"})

    pane, page = response.context["pane"], response.content.decode()
    assert pane.failed_lines == [(4, "halve(x)"), (2, "return n / 0")]
    shown = page.partition('id="tool-result-error">')[2].partition("</pre>")[0]
    assert unescape(strip_tags(shown)).split("\n") == [
        "Line 4  halve(x)",
        "Line 2  return n / 0",
        "ZeroDivisionError: division by zero",
    ]
    assert 'value="error" checked' in page
    assert 'value="model" checked' not in page


def test_an_error_of_a_new_tool_is_shown_with_its_line():
    typed = {**PYTHON, "name": "", "slug": "", "code": "x / 0", "arg-x": "1"}

    pane = tried(client_of(admin()), "/tools/new/python/try/", **typed)

    assert pane.failed_lines == [(1, "x / 0")]


def test_a_new_tool_is_called_before_it_has_a_name():
    typed = {**PYTHON, "name": "", "slug": "", "arg-x": "4"}

    pane = tried(client_of(admin()), "/tools/new/python/try/", **typed)

    assert pane.result.value_text == "8"
    assert not Tool.objects.exists()


@pytest.mark.parametrize("path", ["/tools/twice/try/", "/tools/new/python/try/"])
def test_a_page_without_a_script_comes_back_as_it_is_typed(path):
    tool = make_twice()
    typed = {**PYTHON, "name": "", "code": "x * 5", "arg-x": "4", "seen": "0"}

    response = client_of(admin()).post(path, {**typed, "refresh": "1"})

    page, pane = response.content.decode(), response.context["pane"]
    tool.refresh_from_db()
    assert response.context["form"]["code"].value() == "x * 5"
    assert response.context["form"]["name"].value() == ""
    assert response.context["seen"] == "0"
    assert (pane.result, tool.config) == (None, DOUBLE)
    assert 'name="arg-x" value="4" form="tool-form"' in page
    assert f'data-call\n      form="tool-form" formaction="{path}"' in page


@pytest.mark.parametrize("path", ["/tools/twice/", "/tools/new/python/"])
def test_arguments_are_sent_with_the_form_without_a_script(path):
    make_twice()

    page = client_of(admin()).get(path).content.decode()

    assert re.search(r'name="arg-\w+"[^>]* form="tool-form"', page)
    assert f'data-call\n      form="tool-form" formaction="{path}try/"' in page
    assert "needs-script" not in page.partition("data-call")[2].partition(">")[0]


@pytest.mark.parametrize("path", ["/tools/twice/", "/tools/new/python/"])
@pytest.mark.parametrize(
    ("name", "value", "more"),
    [
        ("arg-x", "4", {}),
        ("arguments-json", "[4", {"arguments_as": "json"}),
    ],
)
def test_a_refused_save_keeps_the_typed_arguments(path, name, value, more):
    make_twice()
    typed = {**PYTHON, "slug": "", "code": "x = = 1", name: value, **more}

    response = client_of(admin()).post(path, typed)

    pane = response.context["pane"]
    assert response.context["form"].errors
    assert [field.value() for field in pane.arguments] == [value]
    assert not pane.arguments.is_checked


def test_a_refused_save_without_arguments_shows_their_defaults():
    schema = {"type": "object", "properties": {"x": {"type": "integer", "default": 7}}}
    make_twice(args_schema=schema)

    response = client_of(admin()).post("/tools/twice/", {**PYTHON, "code": "x = = 1"})

    assert [field.value() for field in response.context["pane"].arguments] == [7]


def test_a_new_tool_belongs_to_who_creates_it():
    response = client_of(admin()).post("/tools/new/python/", {**PYTHON, "slug": ""})

    assert response.status_code == 302
    tool = Tool.objects.get()
    assert (tool.owner, tool.enabled, tool.visibility) == (admin(), True, "private")


def test_a_call_with_side_effects_asks_first_and_once(settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    with serve(lambda got: Answer({"ok": True})) as server:
        client, path = client_of(admin()), "/tools/new/http/try/"
        typed = {**HTTP, "method": "POST", "url": f"{server.url}/a"}

        asked = tried(client, path, **typed)
        assert (asked.must_confirm, asked.result, server.got) == (True, None, [])
        word = asked.confirmation
        assert tried(client, path, **typed, confirmed=word).result.ok
        assert tried(client, path, **typed, confirmed=word).result.ok

        other = {**typed, "url": f"{server.url}/b"}
        assert tried(client, path, **other, confirmed=word).must_confirm
        assert [got.path for got in server.got] == ["/a", "/a"]


def test_the_result_shows_the_response_without_the_secret(settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []

    def echo(got):
        token = got.headers.get("authorization", "")
        return Answer({"got": token}, headers={"x-echo": token})

    with serve(echo) as server:
        credential = Credential.objects.create(
            name="shop", owner=admin(), hosts=[server.url], sealed=seal("s3cret-word")
        )
        typed = {**HTTP, "url": f"{server.url}/a", "credential": credential.pk}

        response = client_of(admin()).post(
            "/tools/new/http/try/", typed, headers={"HX-Request": "true"}
        )

    page, exchange = response.content.decode(), response.context["pane"].result.exchange
    assert server.got[0].headers["authorization"] == "Bearer s3cret-word"
    assert "s3cret-word" not in page
    assert (exchange.status, exchange.byte_count > 0) == (200, True)
    assert dict(exchange.headers)["x-echo"] == "Bearer [secret]"
    assert {"connect", "waiting", "download"} <= set(exchange.phases)


def test_a_call_that_fails_after_a_good_status_has_no_red_status(settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    image = Answer(b"\x89PNG\0" * 2560, content_type="image/png")
    with serve(lambda got: image) as server:
        config = {"method": "GET", "url": f"{server.url}/a.png"}
        make_twice(kind="http", config=config, args_schema=None)
        page = client_of(admin()).post("/tools/twice/try/", {"arg-input": "x"})

    shown = re.sub(r"[ \n]+", " ", strip_tags(page.content.decode()))
    pills = re.findall(r'data-status="failed">.*?</svg>([^<]*)<', page.content.decode())
    assert [word.strip() for word in pills] == ["Failed", "Failed"]
    assert ", 200 OK, 12.5\xa0KB" in shown
    assert "answered with 12,800 bytes of image/png, no text." in shown


def test_a_credential_of_somebody_else_cannot_be_selected(settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    ann = make_user("ann", is_staff=True)
    ann.user_permissions.set(Permission.objects.filter(codename="add_tool"))
    other = Credential.objects.create(
        name="not yours", owner=admin(), hosts=["http://127.0.0.1"], sealed=seal("x")
    )
    typed = {**HTTP, "url": "http://127.0.0.1:9/", "credential": other.pk}

    pane = tried(client_of(ann), "/tools/new/http/try/", **typed)

    assert [one.field.name for one in pane.flaws] == ["credential"]


def test_only_editors_may_test_typed_values():
    make_twice(visibility="everyone")
    viewer = make_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_tool"))

    typed = {**PYTHON, "code": "0", "arg-x": "1"}
    answer = client_of(viewer).post("/tools/twice/try/", typed)
    assert answer.context["pane"].result.value_text == "2"
    for user in (viewer, make_user("bob")):
        assert client_of(user).post("/tools/twice/", PYTHON).status_code == 403
        assert client_of(user).get("/tools/new/http/").status_code == 403

    assert not ToolTrial.objects.get().is_unsaved


def test_calls_of_a_new_tool_are_kept_with_its_form_and_then_with_the_tool():
    client, path = client_of(admin()), "/tools/new/python/try/"
    draft = read_draft(client.get("/tools/new/python/"))
    typed = {**PYTHON, "slug": "", "draft": draft}
    other = read_draft(client.get("/tools/new/python/"))
    tried(client, path, **{**typed, "draft": other, "arg-x": "1"})
    tried(client, path, **{**typed, "arg-x": "20"})

    pane = tried(client, path, **{**typed, "arg-x": "30"})
    loaded = tried(client, path, **{**typed, "trial": str(pane.trials[1][0].pk)})
    refused = client.post("/tools/new/python/", {**typed, "code": "x = = 1"})
    client.post("/tools/new/python/", {**typed, "draft": read_draft(refused)})

    assert [shown for _trial, shown in pane.trials] == ["x=30", "x=20"]
    assert loaded.arguments["x"].value() == 20
    kept = client.get("/tools/twice/").context["pane"].trials
    assert [shown for _trial, shown in kept] == ["x=30", "x=20"]
    assert ToolTrial.objects.get(tool=None).draft == other


def test_nobody_else_gets_the_calls_of_a_new_tool():
    client, path = client_of(admin()), "/tools/new/python/try/"
    draft = read_draft(client.get("/tools/new/python/"))
    typed = {**PYTHON, "slug": "", "draft": draft, "arg-x": "20"}
    trial = tried(client, path, **typed).trials[0][0]
    other = client_of(make_user("root", is_staff=True, is_superuser=True))

    pane = tried(other, path, **{**typed, "trial": str(trial.pk), "refresh": "1"})
    other.post("/tools/new/python/", typed)

    assert pane.trials == []
    assert ToolTrial.objects.get().tool is None


def test_only_the_last_calls_of_new_tools_are_kept():
    client, path = client_of(admin()), "/tools/new/python/try/"
    for _ in range(KEPT_TRIALS + 2):
        draft = read_draft(client.get("/tools/new/python/"))
        tried(client, path, **{**PYTHON, "draft": draft, "arg-x": "1"})

    assert ToolTrial.objects.count() == KEPT_TRIALS


def test_only_the_last_calls_of_one_person_are_kept_without_secrets():
    tool = make_twice(args_schema=None, config={"code": "1"})
    client = client_of(admin())
    for number in range(KEPT_TRIALS + 2):
        tried(client, **{"arg-input": str(number)})
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    Tool.objects.update(args_schema=schema)

    pane = tried(client, **{"arg-password": "hunter22"})

    assert ToolTrial.objects.filter(tool=tool).count() == KEPT_TRIALS
    assert pane.trials[0][1] == "password=[secret]"


def test_earlier_arguments_are_loaded_into_the_form():
    make_twice()
    client = client_of(admin())
    tried(client, **{"arg-x": "33"})
    other = client_of(make_user("root", is_staff=True, is_superuser=True))
    pk = ToolTrial.objects.get().pk

    pane = tried(client, **{**PYTHON, "trial": str(pk)})

    assert pane.arguments["x"].value() == 33
    assert pane.result is None
    assert client.get(f"/tools/twice/?trial={pk}").context["pane"].arguments[
        "x"
    ].value() == (33)
    shown = other.get(f"/tools/twice/?trial={pk}").context["pane"]
    assert (shown.arguments["x"].value(), shown.trials) == (None, [])


def test_a_try_that_is_no_longer_stored_is_not_replaced_by_a_call():
    make_twice()
    client = client_of(admin())
    tried(client, **{"arg-x": "1"})
    pk = ToolTrial.objects.get().pk
    for number in range(KEPT_TRIALS):
        tried(client, **{"arg-x": str(number)})
    before = AuditEntry.objects.filter(action="tried").count()

    for number in (str(pk), "x"):
        pane = tried(client, **{**PYTHON, "arg-x": "7", "trial": number})
        assert pane.note == "This call is no longer stored."
        assert (pane.arguments["x"].value(), pane.result) == ("7", None)
        assert not pane.is_previewed

    page = client.get(f"/tools/twice/?trial={pk}").text
    assert "This call is no longer stored." in page
    assert AuditEntry.objects.filter(action="tried").count() == before


def test_a_try_whose_arguments_were_too_long_is_not_replaced_by_a_call():
    make_twice()
    trial = ToolTrial.objects.create(
        tool=Tool.objects.get(), by=admin(), revision=1, is_ok=True, seconds=0.1
    )

    given = {**PYTHON, "arg-x": "7", "trial": str(trial.pk)}
    pane = tried(client_of(admin()), **given)

    assert pane.note == "The arguments of this call were too long to be stored."
    assert pane.result is None
    assert ToolTrial.objects.count() == 1


def test_a_loaded_try_of_a_new_tool_that_is_gone_is_no_call():
    path = "/tools/new/python/try/"

    pane = tried(client_of(admin()), path, **{**PYTHON, "arg-x": "7", "trial": "1"})

    assert (pane.note, pane.result) == ("This call is no longer stored.", None)


SECRETS = {
    "type": "object",
    "properties": {
        "api_key": {"type": "string"},
        "login": {
            "type": "object",
            "properties": {"password": {"type": "string"}, "who": {"type": "string"}},
        },
        "tokens": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object"},
        "url": {"type": "string"},
    },
    "required": ["api_key"],
}
FIELDS_OF_SECRETS = {
    **{"arg-api_key": "sk-123456", "arg-login.password": "hunter22"},
    **{"arg-login.who": "ann", "arg-tokens": "one\ntwo", "arg-url": "https://a.com/"},
    "arg-options": '{"secret": "x", "deep": [{"token": "y", "n": 1}]}',
}


def test_a_loaded_try_asks_for_its_secrets_again():
    make_twice(args_schema=SECRETS, config={"code": "len(api_key)"})
    client = client_of(admin())
    tried(client, **FIELDS_OF_SECRETS)
    load = {"trial": str(ToolTrial.objects.get().pk)}

    response = client.post("/tools/twice/try/", load, headers={"HX-Request": "true"})

    fields = response.context["pane"].arguments
    shown = {name: fields[name].value() for name in fields.fields}
    assert shown == {
        **{"api_key": None, "login.password": None, "login.who": "ann"},
        **{"tokens": "", "url": "https://a.com/"},
        "options": '{\n  "deep": [\n    {\n      "n": 1\n    }\n  ]\n}',
    }
    assert response.text.count("Secrets are not stored. Enter it again.") == 4
    sent = {f"arg-{name}": text for name, text in shown.items() if text}
    assert "api_key" in tried(client, **sent).arguments.errors


def test_a_loaded_try_has_no_masks_as_json():
    make_twice(args_schema=SECRETS, config={"code": "len(api_key)"})
    client = client_of(admin())
    tried(client, **FIELDS_OF_SECRETS)
    load = {"trial": str(ToolTrial.objects.get().pk), "arguments_as": "json"}

    response = client.post("/tools/twice/try/", load, headers={"HX-Request": "true"})

    text = response.context["pane"].arguments["json"].value()
    assert '"who": "ann"' in text
    assert "[secret]" not in text
    assert "Secrets are not stored. Enter it again." in response.text


def test_the_arguments_follow_the_form_without_a_call():
    make_twice()
    typed = {**PYTHON, "args_schema-0-name": "y", "code": "x = =", "refresh": "1"}

    pane = tried(client_of(admin()), **typed)

    assert [*pane.arguments.fields] == ["y"]
    assert (pane.result, pane.flaws) == (None, [])


def test_a_switch_enables_at_once_and_leaves_the_rest():
    make_twice(enabled=False)
    client = client_of(admin())

    client.post("/tools/twice/enable/", {"enabled": "1"})
    assert Tool.objects.get().enabled
    client.post("/tools/twice/enable/")

    assert not Tool.objects.get().enabled
    assert AuditEntry.objects.filter(action="enabled").count() == 1


def test_a_switch_says_what_it_did():
    make_twice()
    client = client_of(admin())
    assert "Tool enabled" not in client.get("/tools/twice/").content.decode()

    switch = [
        client.post("/tools/twice/enable/", given, HTTP_HX_REQUEST="true")
        for given in ({}, {"enabled": "1"})
    ]

    assert "Tool disabled" in switch[0].content.decode()
    assert "Tool enabled" in switch[1].content.decode()


def test_an_earlier_revision_is_restored():
    tool = make_twice()
    save_tool(tool, by=admin())
    tool.config = {"code": "0", "memory_mb": 64}
    save_tool(tool, by=admin())
    client = client_of(admin())
    assert "x * 2" in client.get("/tools/twice/revisions/").content.decode()

    client.post("/tools/twice/revisions/", {"number": "1"})

    assert Tool.objects.get().config == DOUBLE
    assert client.post("/tools/twice/revisions/", {"number": "99"}).status_code == 404


def test_a_returned_object_is_shown_as_json():
    make_twice(config={"code": "{'double': x * 2, 'tags': ['a']}"})

    response = client_of(admin()).post("/tools/twice/try/", {"arg-x": "4"})

    page = response.content.decode()
    shown = page.partition('id="tool-result-returned">')[2].partition("</pre>")[0]
    text = unescape(strip_tags(shown))
    assert text == '{\n  "double": 8,\n  "tags": [\n    "a"\n  ]\n}'
    assert 'value="returned" checked' in page
    assert response.context["pane"].model_text == '{"double":8,"tags":["a"]}'


def test_a_returned_text_has_no_json_beside_what_the_model_gets():
    make_twice(config={"code": "str(x)"})

    response = client_of(admin()).post("/tools/twice/try/", {"arg-x": "4"})

    assert "tool-result-returned" not in response.content.decode()


@pytest.mark.parametrize("code", ["print('a<b')\nx", "print('a<b')\nx / 0"])
def test_what_code_prints_is_shown_and_not_given_to_the_model(code):
    make_twice(config={"code": code})

    response = client_of(admin()).post("/tools/twice/try/", {"arg-x": "4"})

    page = response.content.decode()
    assert '<pre class="code" id="tool-result-printed">a&lt;b\n</pre>' in page
    assert "a<b" not in response.context["pane"].model_text
    assert response.context["pane"].printed_lines == 1


@pytest.mark.parametrize("code", ["while True:\n    pass", "import asyncio\nx"])
def test_a_try_without_output_has_no_tab_for_it(code):
    make_twice(config={"code": code}, timeout=0.3)

    response = client_of(admin()).post("/tools/twice/try/", {"arg-x": "4"})

    assert "tool-result-printed" not in response.content.decode()
