"""The lists whose rows can be selected, and what can be done with these rows.

Agents, runs and tools have more actions, and views of their own.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, ngettext

from runs.models import (
    AnnotationQueue,
    Conversation,
    Dataset,
    Evaluator,
    Experiment,
    Hook,
    PromptTemplate,
    Provider,
    QueuedRun,
    Schedule,
    ScoringRule,
    Webhook,
)
from runs.services.accounts.tokens import list_own_tokens, revoke_token
from runs.services.agents.manage import archive_definition, unarchive_definition
from runs.services.annotation.queued_runs import remove_queued_run
from runs.services.conversations.messages import update_all_branches
from runs.services.experiments.control import stop_experiment
from runs.services.hooks.manage import delete_hook, set_hook_enabled
from runs.services.rules.manage_rule import (
    delete_scoring_rule,
    set_scoring_rule_enabled,
)
from runs.services.schedules.save import (
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from runs.services.webhooks.manage import delete_webhook, set_webhook_enabled


class RowAction(NamedTuple):
    """What can be done with the selected rows."""

    change: Callable[[Any, User], object]
    """Returns False if the row has changed meanwhile."""
    is_due: Callable[[Any], bool]
    """Whether a row can change; the others are left alone."""
    describe: Callable[[int], str]
    describe_left: Callable[[int], str] = str
    """Says why rows were left alone; not needed if each row can change."""
    reverse: str = ""
    """The action that undoes it."""
    question: Callable[[int], str] | None = None
    """Asks for confirmation first."""
    effect: Promise | str = ""
    """Says what is lost, on the page that asks."""


class RowList(NamedTuple):
    """A list whose rows can be selected."""

    visible: Callable[[User], QuerySet[Any]]
    editable: Callable[[User], QuerySet[Any]]
    actions: dict[str, RowAction]
    page: str = ""
    """URL name of the list, if it is not that of the noun."""
    describe_row: Callable[[Any], str] = str


def describe_archived_before(count: int) -> str:
    return ngettext(
        "%(names)s was already archived.", "%(names)s were already archived.", count
    )


def describe_not_archived(count: int) -> str:
    return ngettext(
        "%(names)s was not archived.", "%(names)s were not archived.", count
    )


def build_archive_actions(
    archive: Callable[[Any], object], unarchive: Callable[[Any], object]
) -> dict[str, RowAction]:
    """Return the two actions on rows that can be archived."""
    return {
        "archive": RowAction(
            lambda row, _by: archive(row),
            lambda row: row.archived_at is None,
            lambda n: ngettext("%(count)s archived.", "%(count)s archived.", n),
            describe_archived_before,
            "unarchive",
        ),
        "unarchive": RowAction(
            lambda row, _by: unarchive(row),
            lambda row: row.archived_at is not None,
            lambda n: ngettext("%(count)s restored.", "%(count)s restored.", n),
            describe_not_archived,
            "archive",
        ),
    }


def build_pause_actions(
    pause: Callable[[Any], object],
    resume: Callable[[Any], object],
    is_on: Callable[[Any], bool],
) -> dict[str, RowAction]:
    """Return the two actions on rows that can be paused."""
    return {
        "pause": RowAction(
            lambda row, _by: pause(row),
            is_on,
            lambda n: ngettext("%(count)s paused.", "%(count)s paused.", n),
            lambda n: ngettext(
                "%(names)s was already paused.", "%(names)s were already paused.", n
            ),
            "resume",
        ),
        "resume": RowAction(
            lambda row, _by: resume(row),
            lambda row: not is_on(row),
            lambda n: ngettext("%(count)s resumed.", "%(count)s resumed.", n),
            lambda n: ngettext(
                "%(names)s was not paused.", "%(names)s were not paused.", n
            ),
            "pause",
        ),
    }


STOP_ACTIONS = {
    "stop": RowAction(
        lambda row, by: stop_experiment(row, by=by),
        lambda row: row.is_running,
        lambda n: ngettext(
            "%(count)s experiment stopped. Runs that have started are still scored.",
            "%(count)s experiments stopped. Runs that have started are still scored.",
            n,
        ),
        lambda n: ngettext(
            "%(names)s was not running.", "%(names)s were not running.", n
        ),
    )
}


def build_delete_action(delete: Callable[[Any], object], effect: Promise) -> RowAction:
    """Return the action that deletes rows after a confirmation."""
    return RowAction(
        lambda row, _by: delete(row),
        lambda _row: True,
        lambda n: ngettext("%(count)s deleted.", "%(count)s deleted.", n),
        question=lambda n: ngettext(
            "Delete %(count)s selected row?", "Delete %(count)s selected rows?", n
        ),
        effect=effect,
    )


REVOKE_ACTIONS = {
    "revoke": RowAction(
        lambda token, _by: revoke_token(token),
        lambda token: token.revoked_at is None,
        lambda n: ngettext("%(count)s token revoked.", "%(count)s tokens revoked.", n),
        lambda n: ngettext(
            "%(names)s was already revoked.", "%(names)s were already revoked.", n
        ),
        question=lambda n: ngettext(
            "Revoke %(count)s token?", "Revoke %(count)s tokens?", n
        ),
        effect=gettext_lazy("Programs that use them can no longer sign in."),
    )
}
REMOVE_ACTIONS = {
    "remove": RowAction(
        lambda item, _by: remove_queued_run(item),
        lambda _item: True,
        lambda n: ngettext(
            "%(count)s run removed from the queue.",
            "%(count)s runs removed from the queue.",
            n,
        ),
        question=lambda n: ngettext(
            "Remove %(count)s run from the queue?",
            "Remove %(count)s runs from the queue?",
            n,
        ),
        effect=gettext_lazy("Their scores in this queue are deleted. The runs stay."),
    )
}


def build_definition_choices(
    model: type[Any], user: User, *, away: bool
) -> dict[str, Any]:
    """Return what a list of definitions, or its archive, needs for selecting rows."""
    editable = model.objects.editable_by(user)
    return {
        "actions": ["unarchive" if away else "archive"],
        "editable": set(editable.values_list("pk", flat=True)),
    }


def build_definition_list(model: type[Any]) -> RowList:
    """Return a list of definitions, which others may see and only owners change."""
    return RowList(
        model.objects.visible_to,
        model.objects.editable_by,
        build_archive_actions(archive_definition, unarchive_definition),
    )


def query_own_conversations(user: User) -> QuerySet[Conversation]:
    return Conversation.objects.filter(owner=user, is_test=False)


def build_switch_list(
    rows: Callable[[User], QuerySet[Any]],
    switch: Callable[..., None],
    delete: RowAction,
) -> RowList:
    """Return a list of the user's own rows, each enabled or paused by `switch`."""
    actions = build_pause_actions(
        partial(switch, is_on=False), partial(switch, is_on=True), lambda row: row.is_on
    )
    return RowList(rows, rows, {**actions, "delete": delete})


def query_visible_items(user: User) -> QuerySet[QueuedRun]:
    queues = AnnotationQueue.objects.visible_to(user)
    return QueuedRun.objects.filter(queue__in=queues)


def query_editable_items(user: User) -> QuerySet[QueuedRun]:
    queues = AnnotationQueue.objects.editable_by(user)
    return QueuedRun.objects.filter(queue__in=queues).select_related("queue", "run")


LISTS = {
    "conversation": RowList(
        query_own_conversations,
        query_own_conversations,
        build_archive_actions(
            lambda row: update_all_branches(row, archived_at=timezone.now()),
            lambda row: update_all_branches(row, archived_at=None),
        ),
        "chat",
    ),
    "dataset": build_definition_list(Dataset),
    "evaluator": build_definition_list(Evaluator),
    "experiment": RowList(
        Experiment.objects.visible_to, Experiment.objects.visible_to, STOP_ACTIONS
    ),
    "hook": build_switch_list(
        Hook.objects.visible_to,
        set_hook_enabled,
        build_delete_action(
            delete_hook,
            gettext_lazy(
                "Their addresses stop working, and the record of their requests is "
                "deleted. The runs they started are kept."
            ),
        ),
    ),
    "prompt": build_definition_list(PromptTemplate),
    "provider": build_definition_list(Provider),
    "queue": build_definition_list(AnnotationQueue),
    "queued-run": RowList(
        query_visible_items,
        query_editable_items,
        REMOVE_ACTIONS,
        "queue-list",
        lambda item: f"{item.run_id} {item.run.title}",
    ),
    "rule": build_switch_list(
        ScoringRule.objects.visible_to,
        set_scoring_rule_enabled,
        build_delete_action(
            delete_scoring_rule,
            gettext_lazy("Their scores are deleted. The runs stay."),
        ),
    ),
    "schedule": RowList(
        Schedule.objects.visible_to,
        Schedule.objects.visible_to,
        {
            **build_pause_actions(
                pause_schedule, resume_schedule, lambda row: row.next_at is not None
            ),
            "delete": build_delete_action(
                delete_schedule,
                gettext_lazy("They will start no more runs. Their runs are kept."),
            ),
        },
    ),
    "token": RowList(list_own_tokens, list_own_tokens, REVOKE_ACTIONS),
    "webhook": build_switch_list(
        Webhook.objects.visible_to,
        set_webhook_enabled,
        build_delete_action(
            delete_webhook,
            gettext_lazy(
                "No more events are sent to them. The record of their deliveries is "
                "deleted."
            ),
        ),
    ),
}
