"""SQL tools: what they read, and that nothing changes."""

import json
import os
import sqlite3
import threading
from contextlib import closing

import psycopg
import pytest

from tests.support.postgres import find_initdb, postgresql
from tools.errors import CallCanceled, ToolFailed, ToolTimedOut
from tools.kinds.registry import call_tool
from tools.kinds.sql import describe_tables
from tools.net.deadline import Deadline
from tools.spec import ToolSpec

SHOP = [
    "CREATE TABLE orders (id integer PRIMARY KEY, who text, total float)",
    "INSERT INTO orders VALUES (1, 'Ann', 9.5), (2, 'Bob', 20), (3, 'Ann', 1)",
]


@pytest.fixture(scope="module")
def server():
    """The address of a real server, as its superuser."""
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as started:
        yield started.url.replace("/agentsite", "/postgres")


@pytest.fixture(scope="module")
def postgres(server):
    """The address of three orders, as a role that owns them."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE ROLE ann LOGIN")
        connection.execute("CREATE DATABASE shop OWNER ann")
    url = server.replace("postgres@", "ann@").replace("/postgres", "/shop")
    with psycopg.connect(url) as connection:
        for statement in SHOP:
            connection.execute(statement)
    return url


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    path = tmp_path_factory.mktemp("sql") / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in SHOP:
            connection.execute(statement)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, settings):
    found = request.getfixturevalue(request.param)
    settings.SQL_CONNECTIONS = f"shop={found}"
    return found


def ask(query, arguments=None, *, timeout=5.0, deadline=None, **config):
    spec = ToolSpec(
        name="t",
        kind="sql",
        timeout=timeout,
        config={"connection": "shop", "query": query, **config},
    )
    return call_tool(spec, arguments or {}, deadline=deadline or Deadline(seconds=20))


def ask_freely(query, **more):
    return ask("", {"query": query}, **more)


def count(url):
    if url.startswith("sqlite"):
        path = "/" + url.removeprefix("sqlite:///").lstrip("/")
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT count(*) FROM orders").fetchone()[0]
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM orders").fetchone()[0]


def test_a_fixed_query_takes_arguments(url):
    message = ask("SELECT id, total FROM orders WHERE who = :who", {"who": "Bob"})

    assert message == {"columns": ["id", "total"], "rows": [[2, 20.0]]}


def test_a_model_may_write_the_query(url):
    message = ask_freely(
        "select who, count(*) as n from orders group by who order by who;"
    )

    assert message["rows"] == [["Ann", 2], ["Bob", 1]]


@pytest.mark.parametrize(
    "value", ["x' OR '1'='1", "x'; DROP TABLE orders; --", "%", "\\' OR 1=1 --"]
)
def test_an_argument_is_a_value_and_never_sql(url, value):
    assert ask("SELECT id FROM orders WHERE who = :who", {"who": value})["rows"] == []
    assert count(url) == 3


def test_text_in_quotes_is_no_argument(url):
    message = ask(
        "SELECT ':who' AS a, 5 % 3 AS b FROM orders WHERE id = :id", {"id": 1}
    )

    assert message["rows"] == [[":who", 2]]


WRITES = [
    "INSERT INTO orders VALUES (9, 'Eve', 0)",
    "UPDATE orders SET total = 0",
    "DELETE FROM orders",
    "DROP TABLE orders",
    "CREATE TABLE evil (a int)",
    "SELECT 1; DELETE FROM orders",
    "SELECT 1; COMMIT; DELETE FROM orders; SELECT 1",
    "SELECT 1) q) z; COMMIT; BEGIN READ WRITE; DELETE FROM orders; --",
    "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
    "COMMIT",
    "ATTACH DATABASE '/tmp/agentsite-sql.db' AS evil",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = 1",
    "VACUUM INTO '/tmp/agentsite-sql.db'",
    "SELECT load_extension('/tmp/x.so')",
    "COPY orders TO PROGRAM 'id'",
    "COPY orders TO '/tmp/agentsite-sql.db'",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SET TRANSACTION READ WRITE",
    "CREATE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "TRUNCATE orders",
    "EXPLAIN ANALYZE DELETE FROM orders",
]


@pytest.mark.parametrize("query", WRITES)
def test_nothing_can_be_changed(url, query):
    with pytest.raises(ToolFailed, match="The query failed"):
        ask_freely(query)

    assert count(url) == 3
    assert not os.path.exists("/tmp/agentsite-sql.db")


@pytest.mark.parametrize(
    "value", [10**30, "\ud800", [1], {"a": 1}, float("inf")], ids=repr
)
def test_a_value_the_database_cannot_hold_is_a_sentence_or_a_value(url, value):
    def message():
        try:
            return ask("SELECT 1 WHERE :x IS NULL", {"x": value})["rows"]
        except ToolFailed as failed:
            return str(failed).partition(":")[0]

    assert message() in ([], "The query failed")


@pytest.mark.slow
def test_sorting_without_end_fills_no_disk_and_no_memory(sqlite, settings):
    settings.SQL_CONNECTIONS = f"shop={sqlite}"
    blobs = "WITH RECURSIVE n(i) AS (SELECT randomblob(500000) UNION ALL " \
        "SELECT randomblob(500000) FROM n) SELECT i FROM n ORDER BY i"  # fmt: skip

    with pytest.raises(ToolFailed, match="more memory than it may have"):
        ask_freely(blobs, timeout=60, deadline=Deadline(seconds=60))


REACHING = [
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    'SELECT "pg_cancel_backend" (1)',
    "SELECT pg_catalog.pg_terminate_backend /* a */ (1)",
    "SELECT pg_advisory_lock(1)",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT query_to_xml('SELECT pg_' || 'cancel_backend(1)', true, true, '')",
    'SELECT U&"pg\\005fcancel_backend"(1)',
    "SELECT dblink('host=127.0.0.1', 'SELECT 1')",
    "SELECT lo_create(1)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "SELECT pg_export_snapshot()",
    r"SELECT E'\'' || pg_advisory_lock(1)::text || 'x'",
    r"SELECT 1e'\'' || pg_advisory_lock(1)::text || 'x'",
    "SELECT $$'$$ || pg_advisory_lock(1)::text || 'x'",
    "SELECT $€$'$€$ || pg_advisory_lock(1)::text || 'x'",
    "SELECT 1 /* /* */ ' */ , pg_advisory_lock(1) -- '",
    "SELECT 1 --\r , pg_advisory_lock(1)\n",
    "SELECT \"a'b\".id, pg_advisory_lock(1), 'x' FROM orders \"a'b\"",
]


REFUSED = r"is not allowed here|are not taken|a \$ is taken"


@pytest.mark.parametrize("query", REACHING)
def test_a_query_reaches_no_other_session_file_or_server(postgres, settings, query):
    settings.SQL_CONNECTIONS = f"shop={postgres}"
    with psycopg.connect(postgres) as other:
        with pytest.raises(ToolFailed, match=REFUSED):
            ask_freely(query)

        assert other.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1) q) y) z UNION ALL SELECT 'x' FROM (SELECT 1 j FROM (SELECT 1",
        "SELECT (1",
        "SELECT 'a",
        'SELECT "a',
        "SELECT 1 /* a",
    ],
)
def test_a_query_cannot_leave_the_brackets_that_limit_it(postgres, settings, query):
    settings.SQL_CONNECTIONS = f"shop={postgres}"

    with pytest.raises(ToolFailed, match="not closed|that was not opened"):
        ask_freely(query)


def test_many_large_rows_are_cut_before_they_leave_the_server(url):
    text = (
        "hex(zeroblob(150000))" if url.startswith("sqlite") else "repeat('x', 300000)"
    )
    message = ask_freely(
        f"SELECT a.id, {text} AS t FROM orders a, orders b", max_rows=9
    )

    assert len(message["rows"]) == 3
    assert message["note"] == "There are more rows; these are the first 3."


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT date'2026-01-31' AS a", "2026-01-31"),
        ("SELECT ')(' || '''$' AS a", ")('$"),
        ('SELECT "a$(".a FROM (SELECT 7 AS a) "a$("', 7),
        ("SELECT /* ( ' */ 8 AS a -- ) '", 8),
    ],
)
def test_what_stands_in_texts_names_and_comments_is_free(
    postgres, settings, query, value
):
    settings.SQL_CONNECTIONS = f"shop={postgres}"

    assert ask_freely(query)["rows"] == [[value]]


def test_the_names_of_such_functions_in_texts_are_only_texts(postgres, settings):
    settings.SQL_CONNECTIONS = f"shop={postgres}"

    message = ask_freely("SELECT 'dblink(1)' AS a -- set_config(1)")

    assert message["rows"] == [["dblink(1)"]]


def test_a_role_that_could_do_anything_is_refused(server, settings):
    settings.SQL_CONNECTIONS = f"shop={server}"

    with pytest.raises(ToolFailed, match="is a superuser"):
        ask_freely("SELECT 1")


def test_rows_are_cut_and_it_is_said(url):
    message = ask_freely("SELECT id FROM orders ORDER BY id", max_rows=2)

    assert message["rows"] == [[1], [2]]
    assert message["note"] == "There are more rows; these are the first 2."


def large(url):
    return "zeroblob(5000000)" if url.startswith("sqlite") else "repeat('x', 5000000)"


def test_a_value_that_is_too_large_is_a_sentence(url):
    with pytest.raises(ToolFailed, match=r"larger than 1 MB|too big"):
        ask_freely(f"SELECT {large(url)} AS a")


def endless(url):
    if url.startswith("sqlite"):
        return "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) " \
            "SELECT count(*) FROM n"  # fmt: skip
    return "SELECT count(*) FROM generate_series(1, 1000000000000)"


def test_an_endless_query_ends_with_the_time_of_its_tool(url):

    with pytest.raises(ToolTimedOut):
        ask_freely(endless(url), timeout=0.5)


def test_stop_ends_an_endless_query(url):
    flag = threading.Event()
    threading.Timer(0.2, flag.set).start()

    with pytest.raises(CallCanceled):
        ask_freely(endless(url), timeout=30, deadline=Deadline(flag=flag))


def test_a_wrong_query_is_the_words_of_the_database(url):
    with pytest.raises(ToolFailed, match="nothing"):
        ask_freely("SELECT * FROM nothing")


def test_a_missing_argument_is_a_sentence(url):
    with pytest.raises(ToolFailed, match="The query failed"):
        ask("SELECT * FROM orders WHERE id = :id")


def test_the_tables_are_reported_in_words(url):
    message = describe_tables("shop", deadline=Deadline(seconds=5))

    assert message.lower().startswith("orders(id integer, who text, total ")


def test_an_unknown_database_is_a_sentence(settings):
    settings.SQL_CONNECTIONS = ""

    with pytest.raises(ToolFailed, match="no database 'shop'"):
        ask_freely("SELECT 1")


@pytest.mark.parametrize(
    "there", ["postgresql://ann:s3cret@127.0.0.1:1/x", "sqlite:////nowhere/x.db"]
)
def test_a_database_that_is_away_is_a_sentence_without_its_password(settings, there):
    settings.SQL_CONNECTIONS = f"shop={there}"

    with pytest.raises(ToolFailed) as caught:
        ask_freely("SELECT 1")

    assert "s3cret" not in str(caught.value)


def test_dates_and_numbers_become_json(url):
    kind = "datetime('2026-01-02')" if url.startswith("sqlite") else "date '2026-01-02'"

    message = ask_freely(f"SELECT {kind} AS d, 1.5 AS n, NULL AS missing")

    assert json.dumps(message["rows"]).startswith('[["2026-01-02')
    assert message["rows"][0][1:] == [1.5, None]
