"""Fixtures of the tests of tools."""

import pytest
from django.db import connection


@pytest.fixture(params=["thread's own", "borrowed"])
def lending(request, monkeypatch):
    """Let a statement use the thread's connection, or one for itself as in a worker."""
    is_checked = request.param == "thread's own"
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", is_checked)
    connection.close()
    return request.param
