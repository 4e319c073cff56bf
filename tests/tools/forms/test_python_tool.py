"""The form of Python tools in the admin."""

import pytest
from django.test import Client

from tests.tools.rows import make_user
from tools.models import Tool
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

    assert "CPython is not switched on here." in posted(interpreter="cpython")
    assert not Tool.objects.exists()
