"""Tests of statements and the connections of PostgreSQL they run on."""

from contextlib import suppress

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from tests.tools.test_statement import INSERT
from tools.statement import execute_statement

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'"),
]


def test_a_worker_gives_the_connection_back_at_once(lending):
    execute_statement(INSERT, ["a"])

    assert (connection.connection is None) == (lending == "borrowed")


@pytest.mark.usefixtures("lending")
def test_is_durable_after_somebody_gave_back_an_open_transaction():
    with suppress(ZeroDivisionError), transaction.atomic():
        execute_statement(INSERT, ["lost"])
        connection.close()
        raise ZeroDivisionError
    execute_statement(INSERT, ["kept"])
    connection.close()

    assert [group.name for group in Group.objects.all()] == ["kept"]


@pytest.mark.usefixtures("lending")
def test_a_connection_that_died_is_replaced():
    with pytest.raises(OperationalError):
        execute_statement("SELECT pg_terminate_backend(pg_backend_pid())")
    connection.close()

    assert execute_statement(INSERT, ["a"]).row_count == 1
