"""axe-core looks at every page; those of runs are in `test_run_reading.py`."""

import pytest

from tests.browser.axe import violations
from tests.browser.chromium import signed_in
from tests.browser.shots import PAGES

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_fault_on_any_page(browser, lived_in, theme):
    size = {"width": 1440, "height": 1000}
    context = browser.new_context(viewport=size, color_scheme=theme)
    page = signed_in(context, lived_in.url, "admin", "admin")
    found = {}
    for name, path in PAGES.items():
        if not name.startswith("run-"):
            page.goto(lived_in.url + path, wait_until="load")
            found[name] = violations(page)

    context.close()
    assert {name: faults for name, faults in found.items() if faults} == {}
