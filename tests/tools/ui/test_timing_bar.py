"""The bar that shows where the time of a call went."""

from tools.ui.timing_bar import build_timing_bar


def test_the_time_before_the_request_is_a_phase():
    found = build_timing_bar({"connect": 0.001, "waiting": 0.004}, 0.025)

    assert [one.name for one in found] == ["prepare", "connect", "waiting"]
    assert round(found[0].seconds, 3) == 0.02
    assert float(found[0].width.rstrip("%")) > 70


def test_a_phase_of_no_time_is_left_out():
    found = build_timing_bar({"connect": 0.0001, "waiting": 0.004}, 0.005)

    assert [one.name for one in found] == ["waiting"]
    assert build_timing_bar({"connect": 0.0001, "waiting": 0.0002}, 0.003) == []


def test_a_call_that_is_only_its_request_has_no_preparation():
    found = build_timing_bar({"connect": 0.001, "waiting": 0.004}, 0.006)

    assert [one.name for one in found] == ["connect", "waiting"]
    assert build_timing_bar({}, 1.0) == []
