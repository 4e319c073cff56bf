"""The form of Python tools in the admin."""

import pytest
from django.test import Client
from django.utils import translation
from django.utils.translation import trans_real

from tests.tools.rows import make_tool, make_user
from tools.forms.open_form import open_tool_form
from tools.forms.python_examples import WORDS_EXAMPLE
from tools.kinds.python import PythonConfig, find_cpython_flaw, run_in_interpreter
from tools.models import Tool
from tools.net.deadline import Deadline
from tools.sandbox.cpython_probe import find_sandbox_flaw

pytestmark = pytest.mark.django_db

ADD = "/admin/tools/tool/add/?kind=python"


def filled(**changes):
    """Return the form as a browser sends it."""
    return {
        **{"name": "double", "slug": "", "description": "d", "enabled": "on"},
        **{"code": "x * 2", "memory_mb": "64"},
        **{"args_schema": '{"properties": {"x": {"type": "integer"}}}'},
        **{"effect": "read", "approval": "never", "timeout": "5", "retries": "0"},
        **{"on_error": "feed_back", "visibility": "private"},
        **{"revisions-TOTAL_FORMS": "0", "revisions-INITIAL_FORMS": "0"},
        **changes,
    }


def posted(**changes):
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))
    return client.post(ADD, filled(**changes)).content.decode()


def test_code_is_made_a_tool():
    posted(code="y = x\r\ny * 2")

    tool = Tool.objects.get(name="double")
    assert tool.kind == "python"
    assert tool.config == {"code": "y = x\ny * 2", "memory_mb": 64}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"code": "x +"}, "Line 1: invalid syntax."),
        ({"code": ""}, "Enter a value for"),
        ({"memory_mb": "100000"}, "512 or less."),
        (
            {"args_schema": '{"properties": {"a-b": {}}}'},
            "is not a valid name of a Python",
        ),
        (
            {"args_schema": '{"properties": {"class": {}}}'},
            "is not a valid name of a Python",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words(changes, sentence):
    assert sentence in posted(**changes)
    assert not Tool.objects.exists()


def test_cpython_can_be_chosen_where_it_is_switched_on_and_holds(settings):
    settings.CPYTHON = True

    said = posted(interpreter="cpython")

    if flaw := find_sandbox_flaw():  # a machine that lets nobody make namespaces
        assert flaw.partition(":")[0] in said
    else:
        assert Tool.objects.get().config["interpreter"] == "cpython"


def test_cpython_is_refused_where_nobody_switched_it_on(settings):
    settings.CPYTHON = False

    assert "CPython is not enabled on this site." in posted(interpreter="cpython")
    assert not Tool.objects.exists()


def test_a_syntax_error_marks_its_line():
    assert 'data-error-line="2"' in posted(code="x = 1\ny = = 2")


def test_a_new_tool_begins_with_an_example_that_works():
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))

    page = client.get(ADD).content.decode()
    config = PythonConfig(code=WORDS_EXAMPLE)
    value = run_in_interpreter(
        config, {"input": "a bird sings"}, deadline=Deadline(seconds=5), on_print=None
    )

    assert "words = input.split()" in page
    assert value == {"words": 3, "longest": "sings"}


def test_cpython_is_offered_only_where_it_is_switched_on(settings):
    settings.CPYTHON = False
    client = Client()
    client.force_login(make_user("admin", is_staff=True, is_superuser=True))

    page = client.get(ADD).content.decode()
    radio = page[page.index('value="cpython"') :].partition(">")[0]

    assert "disabled" in radio
    assert "CPython is not enabled on this site." in page


def test_why_cpython_is_not_offered_is_said_in_the_language_of_the_reader(
    settings, monkeypatch
):
    settings.CPYTHON = False
    catalog = trans_real.translation("zh-hans")
    monkeypatch.setattr(catalog, "gettext", lambda text: f"译 {text}")

    with translation.override("zh-hans"):
        form = open_tool_form("python", user=make_user("admin"))

    flaw = "CPython is not enabled on this site."
    assert form.fields["interpreter"].help_text.startswith(f"译 {flaw}")
    assert find_cpython_flaw().startswith(flaw)


def test_a_tool_keeps_cpython_while_it_is_switched_off(settings):
    settings.CPYTHON = False
    admin = make_user("admin", is_staff=True, is_superuser=True)
    config = {"code": "1", "interpreter": "cpython"}
    tool = make_tool(owner=admin, kind="python", config=config)
    client = Client()
    client.force_login(admin)

    page = client.get(f"/admin/tools/tool/{tool.pk}/change/").content.decode()
    radio = page[page.index('value="cpython"') :].partition(">")[0]

    assert "checked" in radio
    assert "disabled" not in radio


@pytest.mark.parametrize("interpreter", ["monty", "cpython"])
def test_a_failed_try_shows_the_line_that_failed(settings, interpreter):
    settings.CPYTHON = True
    if interpreter == "cpython" and find_sandbox_flaw():
        pytest.skip("no sandbox for CPython on this machine")
    admin = make_user("admin", is_staff=True, is_superuser=True)
    code = "total = 0\nfor n in range(3):\n    total = total / 0\ntotal\n"
    config = {"code": code, "interpreter": interpreter}
    more = {"kind": "python", "effect": "read", "config": config}
    tool = make_tool(owner=admin, **more)
    client = Client()
    client.force_login(admin)

    address = f"/tools/{tool.slug}/try/"
    page = client.post(address, {"arg-input": "x"}).content.decode()

    assert "Line 3: ZeroDivisionError: division by zero" in page
    assert 'data-error-line="3"' in page
