"""A change by `PATCH` starts from what is stored when its row is locked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection, models
from django.utils import timezone

from tests.api.make_client import Api, fields_of
from tests.make import make_provider, make_tool, make_user, make_webhook
from tests.makers.experiments import make_revision
from tools.definition.save import save_tool

pytestmark = pytest.mark.django_db


@contextmanager
def changed_after_first_read(row: models.Model, **fields: Any) -> Iterator[None]:
    """Store `fields`, as another request does, right after the row is first read."""
    others = [fields]

    def change(execute: Any, sql: str, *given: Any) -> Any:
        result = execute(sql, *given)
        if others and sql.startswith("SELECT") and row._meta.db_table in sql:
            type(row)._default_manager.filter(pk=row.pk).update(**others.pop())
        return result

    with connection.execute_wrapper(change):
        yield
    assert not others


@pytest.fixture
def manager():
    user = make_user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="change_tool"))
    return user


def test_a_provider_keeps_what_another_request_changes():
    provider = make_provider(base_url="https://a.example/v1")
    api = Api(provider.owner, scopes=["build"])

    with changed_after_first_read(provider, default_model="later"):
        answer = api.patch(f"providers/{provider.pk}", {"name": "New"})

    provider.refresh_from_db()
    assert answer.status_code == 200
    assert (provider.name, provider.default_model) == ("New", "later")


def test_a_tool_keeps_what_another_request_changes(manager):
    tool = make_tool(manager)
    api = Api(manager, scopes=["build"])

    with changed_after_first_read(tool, description="Later."):
        answer = api.patch(f"tools/{tool.pk}", {"enabled": False})

    tool.refresh_from_db()
    assert answer.status_code == 200
    assert (tool.enabled, tool.description) == (False, "Later.")


def test_a_restored_tool_is_compared_under_its_lock(manager):
    tool = save_tool(make_tool(manager), by=manager)
    api = Api(manager, scopes=["read", "build"])
    seen = api.get(f"tools/{tool.pk}").headers["ETag"]

    with changed_after_first_read(tool, updated_at=timezone.now()):
        answer = api.post(f"tools/{tool.pk}/revisions/1/restore", If_Match=seen)

    assert (answer.status_code, fields_of(answer)) == (412, ["If-Match"])


def test_a_webhook_keeps_what_another_request_changes():
    webhook = make_webhook(name="Chat")

    with changed_after_first_read(webhook, events=["run.failed"]):
        Api(webhook.owner).patch(f"webhooks/{webhook.pk}", {"name": "Other"})

    webhook.refresh_from_db()
    assert (webhook.name, webhook.events) == ("Other", ["run.failed"])


def test_an_evaluator_keeps_what_another_request_changes():
    evaluator = make_revision(make_user()).evaluator
    api = Api(evaluator.owner, scopes=["build"])

    with changed_after_first_read(evaluator, name="Later"):
        api.patch(f"evaluators/{evaluator.pk}", {"config": {"texts": ["new"]}})

    evaluator.refresh_from_db()
    assert (evaluator.name, evaluator.config["texts"]) == ("Later", ["new"])


@pytest.mark.parametrize(
    ("make", "path", "change"),
    [
        (make_webhook, "webhooks", {"events": ["run.failed"]}),
        (
            lambda: make_revision(make_user()).evaluator,
            "evaluators",
            {"name": "Second"},
        ),
    ],
)
def test_a_change_of_what_has_changed_since_is_refused(make, path, change):
    row = make()
    api = Api(row.owner, scopes=["read", "run", "build"])
    seen = api.get(f"{path}/{row.pk}").headers["ETag"]

    first = api.patch(f"{path}/{row.pk}", change, If_Match=seen)
    second = api.patch(f"{path}/{row.pk}", change, If_Match=seen)

    assert (first.status_code, second.status_code) == (200, 412)
    assert fields_of(second) == ["If-Match"]
    again = api.patch(f"{path}/{row.pk}", change, If_Match=first.headers["ETag"])
    assert again.status_code == 200
