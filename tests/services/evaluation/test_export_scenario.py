"""Stored runs as scenario files, which the runner leads to the same end."""

import json

import pytest

from runs.engine.scenarios import main
from runs.models import Run
from runs.services.errors import CannotExportScenario
from runs.services.evaluation.export_scenario import export_scenario
from runs.services.runs.start import start_run
from tests.fakes.model_server import model_server
from tests.make import make_prompt, make_provider, make_run, make_user
from tests.worker.family import caller_of, finished
from tests.worker.run_parts import agent_on, call, calls, executed
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

REACT = ['Action: add\nAction Input: {"a": 2, "b": 2}', "What now?", "Final Answer: 4"]
CASES = {
    "calls side by side": (
        [calls(call("add", a=1, b=2), call("refuse", why="no")), "Done."],
        {},
    ),
    "equal calls": (
        [call("count_call", label="b"), call("count_call", label="b"), "x"],
        {},
    ),
    "unknown tool": ([call("fly"), call("add", a="x"), "Done."], {}),
    "text format": (REACT, {"kind": "react"}),
    "round limit": ([call("add", a=1, b=1)] * 3, {"executor": {"max_iterations": 2}}),
    "loop": ([call("add", a=1, b=1)] * 9, {"executor": {"loop_guard": {"stop": 4}}}),
    "time limit": (["Done."], {"executor": {"max_execution_time": 60}}),
    "parse error": (
        ["Hm."],
        {"kind": "react", "executor": {"handle_parsing_errors": False}},
    ),
    "failed model": ([call("add", a=1, b=1), {"fault": "401"}], {}),
    "JSON answer": (
        ['{"n": 1.0}'],
        {"executor": {"output_schema": {"type": "object", "required": ["n"]}}},
    ),
    "budget": ([call("add", a=1, b=1)] * 2, {"executor": {"budget": {"tokens": 50}}}),
}
TOOLS = ("add", "refuse", "count_call")


@pytest.mark.parametrize("name", CASES)
def test_the_runner_leads_to_the_same_end(name, tmp_path, capsys):
    script, fields = CASES[name]
    with model_server(script=list(script)) as server:
        run = executed(agent_on(server, *TOOLS, **fields))

    scenario = export_scenario(run)

    file = tmp_path / "run.json"
    file.write_text(json.dumps([scenario]))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
    assert scenario["expect"]["steps"] == [
        {
            "tool": step.tool,
            "tool_input": step.tool_input,
            "observation": step.observation,
            "error": step.has_failed,
        }
        for step in run.steps.order_by("index")
    ]
    if name == "loop":
        assert (run.status, run.stop_reason) == ("limit_reached", "loop")


def test_other_results_of_a_scenario_do_not_pass(tmp_path, capsys):
    with model_server(script=[call("add", a=1, b=2), "It is 3."]) as server:
        scenario = export_scenario(executed(agent_on(server, "add")))
    scenario["tools"][0]["stub"]["calls"][0]["observation"] = "4"

    file = tmp_path / "run.json"
    file.write_text(json.dumps([scenario]))

    assert main([str(file)]) == 1
    assert "step 0 observation: expected '3', got '4'" in capsys.readouterr().out


def test_a_prompt_with_other_variables_and_a_called_agent_are_exported():
    script = [call("helper", input="Help."), "Helped.", "Done."]
    with model_server(script=script) as server:
        helper = agent_on(server, slug="helper")
        prompt = make_prompt(
            helper.owner, messages=[{"role": "user", "template": "Go to {city}."}]
        )
        agent = caller_of(server, helper, prompt=prompt)
        run = start_run(agent, by=agent.owner, inputs={"city": "Lima"}, draft=True)

        scenario = export_scenario(finished(run))

    assert scenario["inputs"] == {"city": "Lima"}
    assert scenario["agent"]["prompt"]["messages"][0]["template"] == "Go to {city}."
    assert scenario["tools"][0]["stub"]["calls"][0]["observation"] == "Helped."
    assert "config" not in scenario["tools"][0]


def test_secrets_are_masked_and_the_scenario_still_runs():
    with model_server(
        script=[call("echo_back", text="sk-" + "a" * 30), "ok"]
    ) as server:
        run = executed(agent_on(server, "echo_back"))

        text = json.dumps(export_scenario(run))

    assert "sk-aaa" not in text
    assert "[secret removed]" in text


CANARIES = ("sk-" + "c" * 30, "correct-horse-battery-staple")
"""One that looks like a secret, and one that only the provider's headers name."""


def test_no_setting_carries_a_secret_into_the_file():
    text = " ".join(CANARIES)
    schema = {"type": "object", "description": text, "properties": {text: {}}}
    with model_server(script=["Hm.", REACT[0], "Final Answer: {}"]) as server:
        owner = make_user()
        provider = make_provider(owner, base_url=server.base_url)
        provider.set_headers(f"X-Key: {CANARIES[1]}")
        provider.save()
        messages = [{"role": "system", "template": f"{text} {{tools}} {{tool_names}}"}]
        messages += [{"role": "user", "template": "{input}\n{agent_scratchpad}"}]
        agent = agent_on(
            None,
            "add",
            owner=owner,
            provider=provider,
            kind="react",
            prompt=make_prompt(owner, messages=messages),
            executor={
                "handle_parsing_errors": text,
                "output_schema": schema,
                "budget": {"tokens": 9_000},
            },
        )
        Tool.objects.filter(owner=owner).update(description=text)
        run = executed(agent, text)

        scenario = export_scenario(run)

    assert run.status == "succeeded"
    assert [one for one in CANARIES if one in json.dumps(scenario)] == []
    assert scenario["executor"]["budget"] == {"tokens": 9_000}
    hidden = scenario["executor"]["handle_parsing_errors"]
    assert scenario["expect"]["steps"][0]["observation"] == hidden


def test_runs_that_cannot_be_exported_say_why(client):
    running = make_run(status="canceled")
    with pytest.raises(CannotExportScenario, match="Only ended runs"):
        export_scenario(running)
    with model_server(script=["Done."]) as server:
        run = executed(agent_on(server))
    Run.objects.filter(pk=run.pk).update(output="Something else.")
    run.refresh_from_db()

    client.force_login(run.owner)
    page = client.get(f"/runs/{run.pk}/export/scenario/", follow=True)

    assert "would not lead to the same steps and the same end" in page.text


def test_the_run_page_offers_the_file(client):
    with model_server(script=["Done."]) as server:
        run = executed(agent_on(server))
    client.force_login(run.owner)

    address = f"/runs/{run.pk}/export/scenario/"
    file = client.get(address)

    assert address in client.get(f"/runs/{run.pk}/").text
    assert (
        file["Content-Disposition"]
        == f'attachment; filename="run-{run.pk}.scenario.json"'
    )
    (scenario,) = json.loads(file.content)
    assert scenario["replies"][0]["content"] == "Done."
