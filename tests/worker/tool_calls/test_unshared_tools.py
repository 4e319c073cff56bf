"""What a run may use is asked when it is used, not only when it starts."""

import pytest

from runs.models import Run
from tests.fakes.model_server import model_server
from tests.make import make_tool, make_user
from tests.tools.http_server import Answer, serve
from tests.worker.run_parts import agent_on, call, go_on, started
from tools.models import Credential, Tool
from tools.secrets import seal

pytestmark = pytest.mark.django_db(transaction=True)


def unshare_tool(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(visibility="private")


def unshare_credential(tool: Tool) -> None:
    Credential.objects.filter(pk=tool.credential_id).update(visibility="private")


def rebind_credential(tool: Tool) -> None:
    Credential.objects.filter(pk=tool.credential_id).update(hosts=["api.example.com"])


def keep(tool: Tool) -> None:
    """Change nothing."""


def run_with_changed_tool(change, settings) -> tuple[Run, list[str | None]]:
    """Run an agent with a shared tool and key; return what the tool's server got."""
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1;provider=127.0.0.1", []
    with (
        serve(lambda _got: Answer({"found": 7})) as api,
        model_server(script=[call("orders"), "Done."]) as llm,
    ):
        key = Credential.objects.create(
            name="key",
            owner=make_user(),
            visibility="everyone",
            hosts=[api.url],
            sealed=seal("s3cret-of-another"),
        )
        tool = make_tool(
            make_user(),
            name="orders",
            kind="http",
            visibility="everyone",
            config={"url": api.url},
            args_schema={"type": "object", "properties": {}},
            credential=key,
        )
        agent = agent_on(llm, owner=make_user())
        agent.uses.create(tool=tool, position=0)
        run = started(agent)
        change(tool)
        run = go_on(run)
        sent = [one.headers.get("authorization") for one in api.got]
    return run, sent


def test_a_shared_tool_sends_the_shared_key(settings):
    run, sent = run_with_changed_tool(keep, settings)

    assert run.status == "succeeded"
    assert sent == ["Bearer s3cret-of-another"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(unshare_tool, "may no longer use the tool 'orders'", id="tool"),
        pytest.param(unshare_credential, "may no longer use it", id="credential"),
        pytest.param(rebind_credential, "is not bound to the host", id="binding"),
    ],
)
def test_what_was_unshared_meanwhile_is_not_used(settings, change, why):
    run, sent = run_with_changed_tool(change, settings)

    assert sent == []
    assert why in run.steps.get().observation
