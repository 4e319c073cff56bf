"""Fixtures: one Chromium, a lived-in site, and a fresh one with a worker."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.driver.chromium import chromium
from tests.browser.site import Site, running_site

expect.set_options(timeout=30_000)  # a busy machine is slow, not wrong


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The real Chromium."""
    with chromium() as one:
        yield one


@pytest.fixture(scope="session")
def lived_in() -> Iterator[Site]:
    """A site with a week of runs; nothing runs there."""
    with running_site(seed="tests.browser.seed.site") as site:
        yield site


@pytest.fixture(scope="session")
def first_start() -> Iterator[Site]:
    """A site as `make run` leaves it at the first start, worker included."""
    with running_site(worker=True) as site:
        yield site
