"""The logs of a whole site as JSON, at the level DEBUG, while it handles secrets."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model_server import Recorded, model_server
from tests.faults.database.test_database_away import call_api, command, wait_for_end
from tests.faults.site import Site, run_python, start
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]

CANARIES = {
    "key": "canary-key-of-the-provider",
    "header": "canary-header-of-the-provider",
    "bearer": "canary-credential-of-the-tool",
    "hook": "canary-path-of-the-webhook",
    "password": "canary-password-of-ann",
    "metrics": "canary-token-of-metrics",
}

MAKE_ROWS = """
import django; django.setup()
from django.contrib.auth.models import User
from runs.models import Agent, AgentTool, Provider
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import make_agent, make_tool, make_version, make_webhook
from tools.models import Credential, Tool
from tools.secrets import seal
ann = User.objects.create_superuser("ann", password={password!r})
provider = Provider(owner=ann, name="p", slug="p", kind="openai", base_url={url!r})
provider.set_key({key!r})
provider.set_headers("X-Extra: " + {header!r})
provider.save()
hosts = ["http://127.0.0.1"]
credential = Credential.objects.create(
    owner=ann, name="c", kind="bearer", hosts=hosts, sealed=seal({bearer!r})
)
tool = make_tool(
    ann, name="look", kind="http", credential=credential, config=dict(
        method="GET", url="http://127.0.0.1:9/look"), args_schema=dict(type="object"),
)
log = make_tool(ann, name="log", config=dict(function="tests.faults.functions:log"))
agent = make_agent(ann, tools=(tool, log), provider=provider, slug="looker")
make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
make_webhook(ann, url="https://127.0.0.1:9/" + {hook!r})
"""


def look_and_log(asked: Recorded) -> object:
    """Call a tool that fails and two that log; then answer."""
    *_, last = asked.body["messages"]
    if last["role"] == "tool":
        return "Seen."
    called = [("look", "{}"), ("log", '{"text": "one"}'), ("log", '{"text": "two"}')]
    return {
        "tool_calls": [
            {"name": name, "arguments": arguments, "id": f"c{position}"}
            for position, (name, arguments) in enumerate(called)
        ]
    }


def read_logs(site: Site) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of web server and worker, each an object."""
    return {
        name: [json.loads(line) for line in text.splitlines()]
        for name in ("web", "worker")
        if (text := (site.data / "log" / f"{name}.log").read_text())
    }


def get(site: Site, path: str, **headers: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{site.port}{path}")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_each_line_is_an_object_and_none_has_a_secret(tmp_path: Path):
    with model_server(script=look_and_log) as server:
        site = start(
            tmp_path / "data",
            AGENTSITE_LOG_FORMAT="json",
            AGENTSITE_LOG_LEVEL="DEBUG",
            AGENTSITE_METRICS_TOKEN=CANARIES["metrics"],
            AGENTSITE_TOOL_MODULES="tests.faults.functions",
        )
        try:
            site.wait_for("Agentsite is running at")
            made = MAKE_ROWS.format(url=server.base_url, **CANARIES)
            run_python(site.data, made)
            token = command(site, {}, "create_token", "ann").splitlines()[-1]
            body = {"agent": "looker", "inputs": {"input": "Look."}}
            run = call_api(site, token, "", body)["id"]
            ended = wait_for_end(site, token, run)
            link = command(site, {}, "login_link", "ann").split()[-1]
            get(site, "/login/" + link.rstrip("/").rsplit("/", 1)[-1] + "/")
            get(site, "/metrics", Authorization=f"Bearer {CANARIES['metrics']}")
            get(site, "/metrics", Authorization="Bearer canary-of-a-wrong-token")
            get(site, "/x?token=canary-in-a-query", X_Request_ID="from-outside")
            wait_until(lambda: f'"run": {run}' in worker_log(site))
            logs = read_logs(site)
        finally:
            site.end()
    secrets = [
        *("canary", token, link.rstrip("/").rsplit("/", 1)[-1]),
        (site.data / "secret_key").read_text().strip(),
        (site.data / "encryption_keys").read_text().strip(),
    ]

    assert ended["status"] == "succeeded"
    assert len(logs["web"]) > 5
    for line in [*logs["web"], *logs["worker"]]:
        assert {"timestamp", "level", "logger", "event"} <= line.keys()
        assert [one for one in secrets if one in json.dumps(line)] == [], line
    of_run = [line for line in logs["worker"] if line.get("run") == run]
    assert {line["event"] for line in of_run} >= {"one", "two"}
    assert all(line["worker"] and line["user"] for line in of_run)


def worker_log(site: Site) -> str:
    return (site.data / "log" / "worker.log").read_text()
