"""The page `/api/docs/`."""

import pytest
from django.test import Client

from runs.api.reference import list_operation_groups
from runs.api.registry import ROUTES
from tests.make import make_user

pytestmark = pytest.mark.django_db


def test_the_page_has_every_route():
    client = Client()
    client.force_login(make_user())

    page = client.get("/api/docs/").text

    missing = [one.summary for one in ROUTES if f'id="{one.operation_id}"' not in page]
    assert missing == []


def test_an_example_has_the_required_fields():
    entries = {
        one.id: one for group in list_operation_groups() for one in group.operations
    }

    command = entries["create_agent"].command

    assert '"name": "…", "provider": "…", "model": "…"' in command
    assert "-X POST" in command
    assert entries["read_agent"].command.endswith("/api/v1/agents/ID")
