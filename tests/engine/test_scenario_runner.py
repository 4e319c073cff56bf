"""The command that runs scenario files."""

import json
import subprocess
import sys

import pytest

from runs.engine.scenarios import main, run_scenario

ONE = {
    "id": "one",
    "title": "One.",
    "agent": {"kind": "react"},
    "tools": [],
    "inputs": {"input": "q"},
    "replies": ["Final Answer: yes"],
    "expect": {"status": "finished", "output": "yes", "steps": [], "model_calls": 1},
}


def write(folder, *scenarios, name="s.json"):
    file = folder / name
    file.write_text(json.dumps(scenarios))
    return str(file)


def expecting(**expect):
    return {**ONE, "expect": {**ONE["expect"], **expect}}


def test_says_how_many_passed(tmp_path, capsys):
    assert main([write(tmp_path, ONE, ONE)]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n"


def test_names_what_failed_and_why(tmp_path, capsys):
    write(tmp_path, expecting(output="no"))

    assert main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAILED one: output: expected 'no', got 'yes'")
    assert out.endswith("0 passed, 1 failed\n")


def test_prints_one_json_object_per_line(tmp_path, capsys):
    main(["--json", write(tmp_path, ONE, expecting(status="failed"))])

    *lines, last = capsys.readouterr().out.splitlines()
    first, second = map(json.loads, lines)
    assert set(first) == {"id", "passed", "got", "why"}
    assert first["got"]["output"] == "yes"
    assert (first["passed"], second["passed"]) == (True, False)
    assert last == "1 passed, 1 failed"


@pytest.mark.parametrize(
    ("expect", "why"),
    [
        ({"steps": [{"tool": "x"}]}, "expected 1 steps, got 0"),
        ({"output": None}, "output: expected None"),
        ({"prompt_contains": [["zebra"]]}, "request 1 lacks 'zebra'"),
        ({"prompt_contains": [[], ["zebra"]]}, "request 2 lacks 'zebra'"),
        ({"prompt_excludes": [["Question"]]}, "request 1 has 'Question'"),
    ],
)
def test_every_expectation_can_fail(expect, why):
    verdict = run_scenario(expecting(**expect))

    assert not verdict.passed
    assert why in verdict.why


def test_numbers_booleans_and_strings_are_distinct():
    scenario = {
        **ONE,
        "agent": {"kind": "json-chat"},
        "replies": ['{"action": "Final Answer", "action_input": 1}'],
    }

    outputs = [1, 1.0, True, "1"]
    expected = [
        {**scenario, "expect": {"status": "finished", "output": o}} for o in outputs
    ]
    assert [run_scenario(s).passed for s in expected] == [True, False, False, False]


@pytest.mark.parametrize("key", ["tool", "tool_input", "observation"])
def test_a_step_that_differs_fails(key):
    scenario = expecting(steps=[{"tool": "_Exception", "error": True, key: "other"}])

    assert (
        f"step 0 {key}"
        in run_scenario({**scenario, "replies": ["hm", *ONE["replies"]]}).why
    )


def test_an_option_of_the_wrong_type_is_a_run_that_is_refused():
    scenario = expecting(status="failed", output=None, model_calls=0)

    assert run_scenario({**scenario, "executor": {"early_stopping_method": 5}}).passed


def test_a_script_without_replies_left_fails_the_run():
    assert run_scenario({**ONE, "replies": []}).got[0]["status"] == "failed"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("{}", "must contain a list"),
        ("[1]", "is not an object"),
    ],
)
def test_an_invalid_file_is_reported_in_one_sentence(
    tmp_path, capsys, content, message
):
    file = tmp_path / "s.json"
    file.write_text(content)

    assert main([str(file)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_invalid_scenario_fails_and_the_others_run(tmp_path, capsys):
    assert main([write(tmp_path, {"id": "a"}, ONE)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAILED a: The scenario is not in the format: KeyError")
    assert out.endswith("1 passed, 1 failed\n")


def test_a_stub_that_cannot_work_is_a_tool_that_fails():
    tool = {"name": "t", "description": "", "stub": {"kind": "add"}}
    replies = ["Action: t\nAction Input: x", *ONE["replies"]]

    got = run_scenario({**ONE, "tools": [tool], "replies": replies}).got[0]

    assert got["steps"][0]["error"] is True


def test_a_path_without_scenarios_is_an_error(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert main([str(tmp_path / "none.json")]) == 1
    assert "contains no scenario files" in capsys.readouterr().err


def test_runs_as_a_program_without_django(tmp_path):
    code = (
        "import runpy, sys; sys.argv = ['x', sys.argv[1]]\n"
        "try: runpy.run_module('runs.engine.scenarios', run_name='__main__')\n"
        "finally: print('django' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, write(tmp_path, ONE)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0
    assert done.stdout == "1 passed, 0 failed\nFalse\n"
