"""The figures of a run's header: the bar fills what the text beside it says."""

import pytest

from runs.views.run.state import Meter


@pytest.mark.parametrize(
    ("is_over", "share", "text"), [(False, 84, "84% left"), (True, 16, "16% used")]
)
def test_the_bar_fills_what_the_text_says(is_over, share, text):
    meter = Meter("Tokens", "16", of="100", left=84, is_over=is_over)

    assert (meter.share, meter.share_text) == (share, text)
