"""Trying a tool with what no database, page or reader of JSON takes."""

import pytest
from django.test import Client

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_tool, make_user
from tools.audit.entry import AuditEntry
from tools.audit.write import write_entry

pytestmark = pytest.mark.django_db

ONE = {"type": "object", "properties": {"x": {}}}


def tried(tool, **arguments):
    """Return the page that shows what came of a call."""
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    given = {f"arg-{name}": value for name, value in arguments.items()}
    pane = client.post(f"/tools/{tool.slug}/try/", given).context["pane"]
    word = {"confirmed": pane.confirmation}
    response = client.post(f"/tools/{tool.slug}/try/", {**given, **word})
    assert response.status_code == 200
    return response


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (r'"\ud800"', "a character that cannot be stored"),
        (r'{"\ud800": [1]}', "a character that cannot be stored"),
        (r'["\u0000"]', "a character that cannot be stored"),
        ("1e999", "a number or a character that cannot be stored"),
        ("NaN", "a number or a character that cannot be stored"),
        ("9" * 5000, "a number that is too long"),
        ("[" * 3000 + "]" * 3000, "nested too deeply"),
        ("{", "Not valid JSON."),
    ],
    ids=["half", "half as name", "NUL", "large", "NaN", "long", "deep", "none"],
)
def test_an_argument_that_cannot_be_kept_is_reported_at_its_field(typed, sentence):
    tool = make_tool(kind="python", config={"code": "x"}, args_schema=ONE)

    page = tried(tool, x=typed)

    assert sentence in page.content.decode()
    assert page.context["pane"].result is None


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "body",
    [r'"a\ud800b"', r'{"\ud800": "\u0000"}', "1e999", "NaN", "9" * 5000, "[" * 9999],
    ids=["half", "half as name", "large", "NaN", "long", "deep"],
)
def test_whatever_a_server_answers_is_shown(body, status, settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1", []
    with serve(lambda got: Answer(body.encode(), status=status)) as server:
        tool = make_tool(
            kind="http",
            config={"method": "GET", "url": server.url},
            args_schema={"type": "object"},
        )

        page = tried(tool)

    assert page.context["pane"].result.ok == (status == 200)


def test_a_result_is_shown_as_a_model_would_read_it():
    tool = make_tool(config={"function": "tests.tools.functions:half_a_character"})

    assert "a\ufffdb" in tried(tool).content.decode()


def test_an_entry_of_the_log_holds_no_number_that_no_database_takes():
    changes = {"arguments": [None, {"x": [float("inf"), float("nan"), 1.5]}]}

    write_entry("tried", "tool", make_tool(), changes=changes)

    kept = AuditEntry.objects.get(action="tried").changes["arguments"][1]
    assert kept == {"x": ["inf", "nan", 1.5]}
