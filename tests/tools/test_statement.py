"""Tests of statements that are asked again and again."""

from contextlib import suppress

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from tools.statement import execute_statement

pytestmark = pytest.mark.django_db(transaction=True)
INSERT = "INSERT INTO auth_group (name) VALUES (%s)"


@pytest.mark.usefixtures("lending")
def test_returns_rows_and_how_many_were_changed():
    made = execute_statement(INSERT, ["a"])
    found = execute_statement("SELECT name FROM auth_group")

    assert (made.row_count, made.row) == (1, None)
    assert (found.rows, found.row) == ([("a",)], ("a",))


@pytest.mark.usefixtures("lending")
def test_raises_the_errors_of_django_and_goes_on():
    execute_statement(INSERT, ["a"])
    with pytest.raises(IntegrityError):
        execute_statement(INSERT, ["a"])

    assert execute_statement(INSERT, ["b"]).row_count == 1


@pytest.mark.usefixtures("lending")
def test_belongs_to_the_transaction_of_its_thread():
    with suppress(ZeroDivisionError), transaction.atomic():
        execute_statement(INSERT, ["a"])
        raise ZeroDivisionError

    assert not Group.objects.exists()
