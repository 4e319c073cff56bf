"""CPU seconds of small calls, for `tests.bench.bench_limits`."""

import time

from tests.tools.kinds.test_python import run
from tests.tools.make import call_path

HERE = "tests.tools.functions"


def test_one_call_of_a_function(record_property):
    call_path(f"{HERE}:add", {"a": 1, "b": 2})
    began = time.process_time()

    for _ in range(500):
        call_path(f"{HERE}:add", {"a": 1, "b": 2})

    record_property("seconds", (time.process_time() - began) / 500)


def test_one_call_of_python(record_property):
    run("a + 1", {"a": 1})
    began = time.process_time()

    for _ in range(100):
        run("a + 1", {"a": 1})

    record_property("seconds", (time.process_time() - began) / 100)
