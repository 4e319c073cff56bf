"""What a user owns, and moving it to another user."""

from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import (
    Agent,
    AnnotationQueue,
    ApiToken,
    Dataset,
    Evaluator,
    Hook,
    PromptTemplate,
    Provider,
    Schedule,
    ScoringRule,
    Webhook,
)
from runs.services.errors import RunsError
from tools.audit.write import write_entry
from tools.models import Credential, McpServer, Tool
from tools.ownership import Visibility

MOVED: dict[type[models.Model], Any] = {
    Provider: gettext_lazy("Providers"),
    Credential: gettext_lazy("Credentials"),
    McpServer: gettext_lazy("MCP servers"),
    Tool: gettext_lazy("Tools"),
    PromptTemplate: gettext_lazy("Prompts"),
    Agent: gettext_lazy("Agents"),
    Schedule: gettext_lazy("Schedules"),
    Dataset: gettext_lazy("Datasets"),
    Evaluator: gettext_lazy("Evaluators"),
    AnnotationQueue: gettext_lazy("Annotation queues"),
}
"""In the order of their references. Runs and conversations stay with who had them."""


class CannotTransfer(RunsError):
    """The receiver cannot own these rows."""


class OwnedRows(NamedTuple):
    """The rows of one type that somebody owns."""

    label: str
    names: list[str]
    is_moved: bool = True
    """Whether a transfer moves them."""


def list_owned_rows(user: User) -> list[OwnedRows]:
    """Return what the user owns, archived rows included; empty types are left out.

    Webhooks, tokens and scoring rules act for one person, so they are listed but not
    moved.
    """
    found = [
        OwnedRows(str(label), [str(row) for row in owned_by(user, model)])
        for model, label in MOVED.items()
    ]
    hooks = Webhook.objects.filter(owner=user)
    incoming = Hook.objects.filter(owner=user)
    tokens = ApiToken.objects.filter(user=user, revoked_at=None)
    rules = ScoringRule.objects.filter(owner=user)
    found += [
        OwnedRows(_("Webhooks"), [str(row) for row in hooks], is_moved=False),
        OwnedRows(
            _("Incoming webhooks"), [str(row) for row in incoming], is_moved=False
        ),
        OwnedRows(_("API tokens"), [row.name for row in tokens], is_moved=False),
        OwnedRows(_("Scoring rules"), [str(row) for row in rules], is_moved=False),
    ]
    return [rows for rows in found if rows.names]


class SharedUses(NamedTuple):
    """Agents that others can run although their owner, or a provider's, is gone."""

    own_agents: list[str]
    """Shared agents of the user."""
    agents_of_others: list[str]
    """Agents of other users that use the user's providers."""


def list_shared_uses(user: User) -> SharedUses:
    """Return the agents that deactivating the user does not stop."""
    agents = Agent.objects.filter(archived_at=None, is_playground=False)
    shared = agents.filter(owner=user).exclude(visibility=Visibility.PRIVATE)
    others = agents.filter(provider__owner=user).exclude(owner=user)
    others = others.exclude(owner__is_active=False, visibility=Visibility.PRIVATE)
    others = others.select_related("owner").order_by("name")
    return SharedUses(
        [agent.name for agent in shared.order_by("name")],
        [f"{one.name} ({one.owner.get_username()})" for one in others],
    )


def owned_by(user: User, model: type[models.Model]) -> Any:
    return model._default_manager.filter(owner=user).order_by("pk")


def transfer_ownership(user: User, to: User, *, by: User | None) -> int:
    """Move all definitions and schedules of `user` to `to`; return their number.

    Raises `CannotTransfer`.
    """
    if to.pk == user.pk:
        raise CannotTransfer(_("Select another user."))
    if not to.is_active:
        raise CannotTransfer(_("%(user)s cannot sign in.") % {"user": to.username})
    if not to.is_superuser and user_reads_variables(user):
        raise CannotTransfer(
            _(
                "A provider reads its key from an environment variable, which only "
                "providers of administrators may do. Select an administrator."
            )
        )
    count = 0
    with transaction.atomic():
        for model in MOVED:
            for row in owned_by(user, model):  # one by one: the audit log records each
                row.owner = to
                if isinstance(row, Schedule):
                    row.name = free_schedule_name(row, to)
                row.save()
                count += 1
        write_entry(
            "transferred",
            "user",
            user.username,
            number=user.pk,
            by=by,
            changes={"owner": [user.username, to.username]},
        )
    return count


def user_reads_variables(user: User) -> bool:
    return Provider.objects.filter(owner=user).exclude(key_env="").exists()


def free_schedule_name(row: Schedule, owner: User) -> str:
    """Return the name of the schedule; with its number if the owner has that name."""
    taken = Schedule.objects.filter(owner=owner, name=row.name).exists()
    return f"{row.name[:100]} ({row.pk})" if taken else row.name
