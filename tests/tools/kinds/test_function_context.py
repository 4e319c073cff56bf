"""What functions learn from their context: user, secret, progress."""

from typing import Any

import pytest

from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.make import call_path
from tests.tools.rows import make_tool, make_user
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.models import Credential, Tool
from tools.net.deadline import Deadline
from tools.registry import ToolUser
from tools.secrets import seal
from tools.services.try_tool import try_tool
from tools.spec import ToolSpec

HERE = "tests.tools.functions"
SECRET = "k3y/of&shop"
BOTH = pytest.mark.parametrize("name", ["uses_secret", "isolated_uses_secret"])


def make_secret_tool(name: str, **fields: Any) -> Tool:
    credential = Credential.objects.create(
        name="Shop",
        owner=make_user(),
        hosts=["api.example.com", "http://*.shop.example:8080"],
        sealed=seal(SECRET),
    )
    config = {"function": f"{HERE}:{name}"}
    return make_tool(config=config, credential=credential, **fields)


def call(tool: Tool, how: str, progress: list[str]) -> Any:
    return call_tool(
        freeze_tool(tool),
        {"how": how},
        deadline=Deadline(),
        user=ToolUser(4, "bo"),
        on_progress=progress.append,
    )


@BOTH
@pytest.mark.django_db(transaction=True)
def test_a_function_gets_secret_user_and_the_hosts_of_its_credential(name: str):
    progress: list[str] = []

    value = call(make_secret_tool(name), "return", progress)

    assert value["[secret]"] == ["Bearer [secret]"]
    assert value["user"] == "bo"
    assert value["hosts"] == ["api.example.com", "*.shop.example"]
    assert SECRET not in str(value)
    assert progress == ["asks as ToolUser(id=4, username='bo') with [secret]"]


@BOTH
@pytest.mark.parametrize("how", ["raise", "fail"])
@pytest.mark.django_db(transaction=True)
def test_errors_do_not_show_the_secret(name: str, how: str):
    with pytest.raises(ToolFailed, match=r"refused \[secret\]") as failed:
        call(make_secret_tool(name), how, [])

    assert failed.value.__cause__ is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("hosts", "allowed"),
    [
        (["api.example.com", "b.example"], ["api.example.com"]),
        (["*.example.com"], ["api.example.com"]),
        (["eu.shop.example"], ["eu.shop.example"]),
    ],
)
def test_hosts_of_tool_and_credential_both_count(hosts: list[str], allowed: list[str]):
    tool = make_secret_tool("uses_secret", hosts=hosts)

    assert call(tool, "return", [])["hosts"] == allowed


@pytest.mark.django_db(transaction=True)
def test_a_tool_that_reaches_none_of_the_hosts_gets_no_secret():
    tool = make_secret_tool("uses_secret", hosts=["b.example"])

    with pytest.raises(ToolFailed, match="the tool may reach none of its hosts"):
        call(tool, "return", [])


@pytest.mark.django_db(transaction=True)
def test_a_function_that_keeps_to_no_hosts_gets_no_secret():
    with pytest.raises(ToolFailed, match="does not declare keeps_hosts=True"):
        call_tool(
            freeze_tool(make_secret_tool("asks_for_a_secret")), {}, deadline=Deadline()
        )


def test_without_a_credential_the_error_says_what_to_do():
    with pytest.raises(ToolFailed, match="needs a credential. Select one"):
        call_path(f"{HERE}:asks_for_a_secret", {})


def test_progress_without_a_listener_is_dropped():
    assert call_path(f"{HERE}:isolated_progress", {}) == "x" * 200_000


def test_progress_of_a_process_arrives_whole_from_several_threads():
    progress: list[str] = []
    spec = {"name": "f", "config": {"function": f"{HERE}:isolated_progress"}}

    call_tool(
        ToolSpec.model_validate(spec),
        {},
        deadline=Deadline(),
        on_progress=progress.append,
    )

    assert sorted(progress) == [f"{n}\n" * 20_000 for n in range(4)]


def test_a_listener_that_fails_does_not_fail_the_call():
    def fail(text: str) -> None:
        raise OSError(text)

    spec = {"name": "f", "config": {"function": f"{HERE}:isolated_progress"}}
    value = call_tool(
        ToolSpec.model_validate(spec), {}, deadline=Deadline(), on_progress=fail
    )

    assert value == "x" * 200_000


@BOTH
@pytest.mark.django_db(transaction=True)
def test_the_test_page_has_user_and_secret_too(name: str):
    tool = make_secret_tool(name)

    result = try_tool(tool, {"how": "return"}, by=tool.owner)

    assert '"user":"ann"' in result.value_text
    assert "[secret]" in result.value_text
    assert SECRET not in result.value_text
