"""The list of databases that SQL tools may read."""

import pytest

from tools.sql.connections import find_sql_connection


@pytest.mark.parametrize(
    ("path", "file"),
    [("~/shop.db", "/home/ann/shop.db"), ("/a%20b", "/a b"), ("shop.db", "shop.db")],
)
def test_a_tilde_is_the_home_folder(monkeypatch, path, file):
    monkeypatch.setenv("HOME", "/home/ann")

    assert find_sql_connection("shop", f"shop=sqlite:///{path}").path == file
