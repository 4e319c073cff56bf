"""Cells of the administration's lists."""

import pytest

from tools.admin.cells import render_breakable_address


@pytest.mark.parametrize(
    ("address", "broken"),
    [
        (
            "https://calendar.example/mcp",
            "https://<wbr>calendar.<wbr>example/<wbr>mcp",
        ),
        ("calendar", "calendar"),
        ("https://a/?<b>", "https://<wbr>a/?<wbr>&lt;b&gt;"),
    ],
)
def test_an_address_is_broken_between_its_parts(address, broken):
    assert render_breakable_address(address) == broken
