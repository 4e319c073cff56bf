"""What must not take long, each beside its limit: `python -m tests.bench.bench_limits`.

These are tests of the suite, which judges only what they do, and the modules of
`limits`. A test that records a property `seconds` is measured by it, any other by the
time of its call. One that misses its limit gets two more chances: a busy machine is
slow at times. Exits 1 if a limit was missed or a test failed.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

LIMITS = {
    "tests/agentsite/test_celery.py::test_a_broker_that_is_away_is_an_error": 3.0,
    "tests/agentsite/test_celery.py::test_a_broker_that_hangs_is_an_error": 3.0,
    "tests/bench/limits/limit_calls.py::test_one_call_of_a_function": 0.0003,
    "tests/bench/limits/limit_calls.py::test_one_call_of_python": 0.003,
    "tests/bench/limits/limit_openapi.py::test_a_large_document_is_imported": 5.0,
    "tests/bench/limits/limit_parsing.py::test_hostile_text": 0.1,
    "tests/bench/limits/limit_parsing.py::test_hostile_arguments": 0.1,
    "tests/browser/agents/test_editor.py::test_two_thousand_lines_are_edited": 1.4,
    "tests/browser/test_newcomer.py::"
    "test_the_first_link_leads_to_a_run_that_shows_its_first_step": 5.0,
    "tests/browser/runs/test_run_page.py::"
    "test_stop_is_acknowledged_and_ends_the_run": 2.0,
    "tests/engine/parsing/test_json_schema.py::"
    "test_a_pattern_that_may_take_forever_is_refused_and_never_run": 1.0,
    "tests/faults/broker/test_redis_dies.py::"
    "test_a_run_is_accepted_and_finishes_later": 1.0,
    "tests/faults/worker/test_stop_computing.py::test_stop_ends_a_computing_tool": 5.0,
    "tests/faults/worker/test_worker_dies.py::test_stop_ends_a_hanging_model_call": 5.0,
    "tests/faults/worker/test_worker_dies.py::test_stop_ends_a_hanging_tool": 5.0,
    "tests/live/test_asgi.py::test_a_server_that_is_stopped_ends_its_streams": 4.0,
    "tests/live/test_hub.py::test_streams_end_when_the_server_stops": 1.0,
    "tests/live/test_stream.py::test_notices_are_dropped_while_redis_hangs": 2.0,
    "tests/llm/demo/test_client.py::test_the_slow_model_stops_at_its_deadline": 1.0,
    "tests/llm/test_every_kind.py::test_the_deadline_ends_every_call": 1.0,
    "tests/llm/test_openai_faults.py::"
    "test_the_deadline_ends_a_call_that_never_ends": 1.0,
    "tests/llm/test_openai_faults.py::test_stop_ends_a_call_that_never_ends": 1.0,
    "tests/tools/builtin/test_builtin.py::"
    "test_the_calculator_refuses_with_a_sentence": 0.5,
    "tests/tools/kinds/test_cpython.py::test_time_ends_where_the_tool_says": 2.4,
    "tests/tools/kinds/test_cpython.py::"
    "test_limits_hold_within_a_fifth_and_the_worker_lives": 1.3,
    "tests/tools/kinds/test_function.py::"
    "test_a_call_past_the_time_of_its_tool_is_left_behind_and_counted": 0.5,
    "tests/tools/kinds/test_function.py::test_stop_ends_a_hanging_call": 1.0,
    "tests/tools/kinds/test_http.py::"
    "test_encodings_of_other_things_than_text_unpack_nothing": 1.0,
    "tests/tools/kinds/test_http.py::test_stop_ends_a_hanging_request": 1.5,
    "tests/tools/kinds/test_python.py::"
    "test_limits_hold_within_a_fifth_and_the_neighbours_live": 1.3,
    "tests/tools/kinds/test_python.py::test_stop_kills_the_sandbox": 1.2,
    "tests/tools/kinds/test_sql.py::"
    "test_an_endless_query_ends_with_the_time_of_its_tool": 1.5,
    "tests/tools/kinds/test_sql.py::test_stop_ends_an_endless_query": 2.5,
    "tests/tools/net/test_http_response.py::test_a_long_line_is_refused": 0.1,
    "tests/tools/net/test_netguard.py::test_a_deadline_ends_a_hanging_call": 1.0,
    "tests/tools/net/test_netguard.py::test_stop_ends_a_hanging_call": 0.9,
    "tests/tools/net/test_netguard.py::"
    "test_a_hanging_name_server_does_not_outlive_the_deadline": 0.8,
    "tests/tools/net/test_netguard_tls.py::test_stop_ends_a_hanging_call_over_tls": 1.0,
    "tests/tools/net/test_netguard_tls.py::"
    "test_a_handshake_that_hangs_ends_with_the_deadline": 1.0,
    "tests/tools/schema/test_safe_schema.py::"
    "test_many_objects_are_compared_in_linear_time": 5.0,
    "tests/tools/schema/test_safe_schema.py::test_allowed_values_are_read_once": 5.0,
    "tests/tools/schema/test_safe_schema.py::"
    "test_an_error_of_a_huge_list_of_allowed_values_is_short": 5.0,
    "tests/tools/services/test_try_tool.py::"
    "test_stop_ends_a_request_to_a_server_that_does_not_answer": 5.0,
    "tests/tools/sandbox/test_isolated.py::test_wrong_arguments_start_no_process": 0.05,
    "tests/tools/sandbox/test_isolated.py::test_stop_ends_the_process": 2.0,
    "tests/views/test_health.py::test_a_hung_broker_does_not_hold_it_up": 1.0,
    "tests/worker/test_odd_moments.py::"
    "test_the_tries_of_a_call_end_with_the_runs_time": 1.5,
}
"""Seconds; a test with parameters is judged by the slowest."""


def main() -> int:
    """Measure, and print each beside its limit."""
    found = measure(list(LIMITS))
    for _ in range(2):
        late = [test for test in LIMITS if found.get(test, 0) > LIMITS[test]]
        again = measure(late) if late else {}
        found |= {test: min(found[test], again.get(test, 1e9)) for test in late}
    sys.stdout.write(f"{'seconds':>9}{'limit':>9}\n")
    for test, limit in LIMITS.items():
        took = found.get(test)
        note = "  FAILED" if took is None else "  MISSED" if took > limit else ""
        shown = "" if took is None else f"{took:.4f}"
        sys.stdout.write(f"{shown:>9}{limit:9g}  {test.partition('::')[2]}{note}\n")
    return int(any(found.get(test, 1e9) > limit for test, limit in LIMITS.items()))


def measure(tests: list[str]) -> dict[str, float]:
    """Run tests; return their seconds, those that failed left out."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["-q", "-p", "no:randomly", "-o", "junit_duration_report=call"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests],
            stdout=subprocess.DEVNULL,
        )
        cases = list(ET.parse(report).iter("testcase"))
    found: dict[str, float] = {}
    failed = set()
    for case in cases:
        path = case.attrib["classname"].replace(".", "/")
        test = f"{path}.py::{case.attrib['name'].partition('[')[0]}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
        recorded = case.find("properties/property[@name='seconds']")
        values = case.attrib["time"] if recorded is None else recorded.attrib["value"]
        found[test] = max(found.get(test, 0), float(values))
    return {test: seconds for test, seconds in found.items() if test not in failed}


if __name__ == "__main__":
    sys.exit(main())
