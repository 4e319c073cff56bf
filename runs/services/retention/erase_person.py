"""Erase a person: delete what is theirs, and their name wherever it must stay.

A deletion job does it in batches, so that a crash or a shutdown only delays it. Each
stage can begin anew.
"""

from typing import Any, NamedTuple

from django.contrib.admin.models import LogEntry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from runs.models import (
    Agent,
    AgentRetention,
    AgentTool,
    AgentVersion,
    Annotation,
    AnnotationQueue,
    ApiToken,
    Conversation,
    Dataset,
    DatasetVersion,
    DeletionJob,
    EditSession,
    Evaluator,
    Experiment,
    ExperimentCandidate,
    Gate,
    Hook,
    PromptTemplate,
    Provider,
    ProviderModel,
    Run,
    RunComment,
    RunSearchRow,
    SavedFilter,
    Schedule,
    ScoringRule,
    Spec,
    Webhook,
)
from runs.models.runs import UNFINISHED_STATUSES
from runs.redis_streams import delete_stream_entries
from runs.services.accounts.tokens import revoke_all_tokens
from runs.services.accounts.transfer import (
    MOVED,
    CannotTransfer,
    owned_by,
    transfer_ownership,
    user_reads_variables,
)
from runs.services.agents.edit_sessions import end_edit_session
from runs.services.errors import RunsError
from runs.services.experiments.control import (
    combine_remaining_scores,
    note_deleted_evaluators,
)
from runs.services.retention.batches import OpenStage, RetentionBatch
from runs.services.retention.jobs import create_job
from runs.services.runs.cancel import cancel_run
from runs.services.runs.delete_rows import (
    delete_conversation_rows,
    delete_run_rows,
    delete_unused_specs,
    list_relations,
    lock_runs,
    lock_trees,
)
from runs.services.search.daily_stats import mark_pruned
from runs.services.search.slot_stats import forget_slots_of
from tools.audit.erase import (
    clear_entries_about,
    find_person_words,
    replace_person_in_entries,
)
from tools.models import AuditEntry, Credential, McpServer, Tool

MAX_RUNS = 50
CANCEL_WAIT_SECONDS = 2.0
AUDIT_WINDOW = 2_000
"""Keys of audit entries that one batch looks at."""

NOUNS: dict[Any, str] = {
    Agent: "agent",
    AgentTool: "agent tool",
    AgentVersion: "agent version",
    AgentRetention: "retention rule",
    PromptTemplate: "prompt",
    Provider: "provider",
    ProviderModel: "model",
    ApiToken: "API token",
    Schedule: "schedule",
    Dataset: "dataset",
    Evaluator: "evaluator",
    Gate: "gate",
    AnnotationQueue: "annotation queue",
    ScoringRule: "scoring rule",
    DatasetVersion: "dataset version",
    Webhook: "webhook",
    Hook: "incoming webhook",
    Tool: "tool",
    Credential: "credential",
    McpServer: "MCP server",
}


class CannotErase(RunsError):
    """The person cannot be erased this way."""


class ErasedRows(NamedTuple):
    """Rows of one kind, and what becomes of them."""

    label: str
    rows: int


class ErasurePlan(NamedTuple):
    deleted: list[ErasedRows]
    owned: list[ErasedRows]
    """Definitions, which are transferred or deleted."""
    used_by_others: list[str]
    """Of those, what others use: it must be transferred."""
    mentions: int
    """Audit entries by or about the person, in which the name is replaced."""


def plan_erasure(user: User) -> ErasurePlan:
    """Return what would be deleted, and what would be transferred or deleted."""
    deleted = [
        ErasedRows(_("Runs"), Run.objects.filter(owner=user).count()),
        ErasedRows(_("Conversations"), Conversation.objects.filter(owner=user).count()),
        ErasedRows(_("Comments"), RunComment.objects.filter(author=user).count()),
        ErasedRows(_("Annotations"), Annotation.objects.filter(by=user).count()),
        ErasedRows(_("Experiments"), Experiment.objects.filter(owner=user).count()),
        ErasedRows(_("Scoring rules"), ScoringRule.objects.filter(owner=user).count()),
        ErasedRows(_("Webhooks"), Webhook.objects.filter(owner=user).count()),
        ErasedRows(_("Incoming webhooks"), Hook.objects.filter(owner=user).count()),
        ErasedRows(_("API tokens"), user.api_tokens.count()),
        ErasedRows(_("Saved filters"), SavedFilter.objects.filter(owner=user).count()),
    ]
    owned = [
        ErasedRows(str(label), owned_by(user, model).count())
        for model, label in MOVED.items()
    ]
    mentions = AuditEntry.objects.filter(
        Q(by_number=user.pk) | Q(noun="user", thing_number=user.pk)
    )
    return ErasurePlan(
        [row for row in deleted if row.rows],
        [row for row in owned if row.rows],
        list_used_by_others(user),
        mentions.count(),
    )


def list_used_by_others(user: User) -> list[str]:
    """Return the names of definitions that rows of others refer to."""
    found = set[str]()
    for model in MOVED:
        for relation in list_relations(model):
            if relation.on_delete not in (models.PROTECT, models.RESTRICT):
                continue
            others = exclude_rows_of(user, relation.related_model)
            keys = others.values(relation.field.attname)
            found |= {str(row) for row in owned_by(user, model).filter(pk__in=keys)}
    found |= {
        str(row)
        for row in owned_by(user, Agent).filter(
            Q(pk__in=Webhook.objects.exclude(owner=user).values("agent"))
            | Q(pk__in=Hook.objects.exclude(owner=user).values("agent"))
        )
    }
    gates = Gate.objects.exclude(agent__owner=user)
    rules = ScoringRule.objects.exclude(owner=user)
    for rows in (gates.values("evaluators"), rules.values("evaluators")):
        mine = owned_by(user, Evaluator).filter(pk__in=rows)
        found |= {str(row) for row in mine}
    return sorted(found)


def exclude_rows_of(user: User, model: Any) -> QuerySet[Any]:
    """Return the rows of other people; parts of a row are its owner's."""
    paths = {
        AgentTool: "agent__owner",
        ExperimentCandidate: "experiment__owner",
        Gate: "agent__owner",
    }
    path = paths.get(model, "owner")
    if model not in paths and not hasattr(model, "owner"):
        return model._base_manager.none()  # type: ignore[no-any-return]  # any model
    return model._base_manager.exclude(**{path: user})  # type: ignore[no-any-return]


def erase_person(user: User, *, to: User | None, by: User | None) -> DeletionJob:
    """Disable the account and return the job that erases it; raise `CannotErase`.

    Definitions go to `to`, else they are deleted.
    """
    check_erasure(user, to=to, by=by)
    with transaction.atomic():
        job = create_job(
            DeletionJob.Purpose.PERSON, person_number=user.pk, receiver=to, by=by
        )
        if job.person_number != user.pk:
            raise CannotErase(
                _("Another person is being erased. Try again when that is done.")
            )
        revoke_all_tokens(user)
        Schedule.objects.filter(owner=user).update(next_at=None)
        User.objects.filter(pk=user.pk).update(
            is_active=False, password=make_password(None)
        )
    return job


def check_erasure(user: User, *, to: User | None, by: User | None) -> None:
    """Raise `CannotErase` if the person or the receiver is the wrong one."""
    if by is not None and by.pk == user.pk:
        raise CannotErase(_("You cannot erase yourself. Ask another administrator."))
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if user.is_superuser and not others.exists():
        raise CannotErase(_("The last administrator cannot be erased."))
    if to is None:
        if used := list_used_by_others(user):
            raise CannotErase(
                _("Others use %(names)s. Select a new owner.")
                % {"names": ", ".join(used)}
            )
    elif to.pk == user.pk:
        raise CannotErase(_("Select another user."))
    elif not to.is_active:
        raise CannotErase(_("%(user)s cannot sign in.") % {"user": to.username})
    elif not to.is_superuser and user_reads_variables(user):
        raise CannotErase(
            _(
                "A provider reads its key from an environment variable, which only "
                "providers of administrators may do. Select an administrator."
            )
        )


def list_person_stages(job: DeletionJob) -> list[OpenStage]:
    """Return the stages of erasing a person, in the order of the references."""
    user = User.objects.filter(pk=job.person_number or 0).first()
    if user is None:  # the last stage is done
        return []

    def stage(run_batch: Any) -> OpenStage:
        return lambda: lambda after: run_batch(user, job, after)

    return [
        stage(run_batch)
        for run_batch in (
            cancel_runs,
            delete_runs_of,
            delete_conversations_of,
            hand_over,
            clear_streams,
            rename_in_audit_log,
            delete_account,
        )
    ]


def cancel_runs(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    """Cancel unfinished runs, and wait until their workers have ended them."""
    runs = Run.objects.filter(owner=user, status__in=UNFINISHED_STATUSES)
    for run in runs.filter(parent_step=None, cancel_requested_at=None):
        cancel_run(run)
    if runs.exists():
        return RetentionBatch({}, wait=CANCEL_WAIT_SECONDS)
    return RetentionBatch({}, is_last=True)


def delete_runs_of(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    """Delete ended runs, kept or not, with what the audit log has of them."""
    rows = Run.objects.filter(owner=user).order_by("pk").values_list("pk", flat=True)
    keys = list(rows.filter(parent_step=None)[:MAX_RUNS]) or list(rows[:MAX_RUNS])
    trees = lock_trees(lock_runs(pk__in=keys))
    family = [run.pk for tree in trees for run in tree]
    clear_entries_about("run", family)
    steps = Run.objects.filter(pk__in=family).values("steps__pk")
    clear_entries_about("tool call", steps)
    mark_pruned(RunSearchRow.objects.filter(run__in=family).select_related("run"))
    delete_run_rows(family)
    return RetentionBatch({"runs": len(family)}, is_last=not keys)


def delete_conversations_of(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    """Delete comments on runs, and conversations, the newest branches first."""
    RunComment.objects.filter(author=user).delete()
    mine = Conversation.objects.filter(owner=user)
    runs_of_others = Run.objects.filter(conversation__in=mine)
    runs_of_others.update(conversation=None)
    Conversation.objects.filter(branch_of__in=mine).update(branch_of=None)
    Conversation.objects.filter(root__in=mine).exclude(owner=user).update(root=None)
    count = delete_conversation_rows(list(mine.values_list("pk", flat=True)))
    return RetentionBatch({"conversations": count}, is_last=True)


def list_specs_called(agents: QuerySet[Agent]) -> list[int]:
    """Return the specs that experiments have stored because an agent calls these."""
    keys = {str(pk) for pk in agents.values_list("pk", flat=True)}
    calling = ExperimentCandidate.objects.exclude(called_specs={})
    digests = {
        digest
        for called in calling.values_list("called_specs", flat=True)
        for key, digest in called.items()
        if key in keys
    }
    return list(Spec.objects.filter(digest__in=digests).values_list("pk", flat=True))


def hand_over(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    """Transfer definitions, or delete them with what the audit log has of them."""
    for agent in EditSession.objects.filter(by_number=user.pk).values_list(
        "agent", flat=True
    ):
        end_edit_session(agent)
    called = list_specs_called(owned_by(user, Agent))
    experiments = Experiment.objects.filter(owner=user)
    clear_entries_about("experiment", experiments.values("pk"))
    experiments.delete()
    delete_rows_with_entries(ScoringRule.objects.filter(owner=user))
    delete_rows_with_entries(Webhook.objects.filter(owner=user))
    delete_rows_with_entries(Hook.objects.filter(owner=user))
    delete_rows_with_entries(ApiToken.objects.filter(user=user))
    if job.receiver is not None:
        try:
            count = transfer_ownership(user, job.receiver, by=job.by)
        except CannotTransfer as refused:
            raise CannotErase(str(refused)) from None
        return RetentionBatch({"transferred": count}, is_last=True)
    count = 0
    agents, providers = owned_by(user, Agent), owned_by(user, Provider)
    delete_rows_with_entries(AgentTool.objects.filter(agent__in=agents))
    delete_rows_with_entries(Gate.objects.filter(agent__in=agents))
    versions = AgentVersion.objects.filter(agent__in=agents)
    specs = list(versions.values_list("spec", flat=True))
    delete_rows_with_entries(versions)
    delete_unused_specs([*specs, *called])
    delete_rows_with_entries(AgentRetention.objects.filter(agent__in=agents))
    delete_rows_with_entries(ProviderModel.objects.filter(provider__in=providers))
    datasets = owned_by(user, Dataset)
    delete_rows_with_entries(DatasetVersion.objects.filter(dataset__in=datasets))
    changed = note_deleted_evaluators(Evaluator.objects.filter(owner=user))
    for model in reversed(MOVED):
        count += delete_rows_with_entries(owned_by(user, model))
    combine_remaining_scores(changed)
    return RetentionBatch({"definitions": count}, is_last=True)


def delete_rows_with_entries(rows: QuerySet[Any]) -> int:
    """Delete rows one by one, and then what the audit log has of them."""
    count = 0
    for row in rows:
        key, model = row.pk, type(row)
        row.delete()
        clear_entries_about(NOUNS[model], [key])
        count += 1
    return count


def clear_streams(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    """Remove text of runs that no longer exist from Redis."""
    delete_stream_entries(
        lambda found: (
            found - set(Run.objects.filter(pk__in=found).values_list("pk", flat=True))
        )
    )
    return RetentionBatch({}, is_last=True)


def rename_in_audit_log(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    words = find_person_words(user)
    last = replace_person_in_entries(user.pk, words, after=after, limit=AUDIT_WINDOW)
    return RetentionBatch({}, after if last is None else last, is_last=last is None)


def delete_account(user: User, job: DeletionJob, after: int) -> RetentionBatch:
    """Delete the account with its sessions, under a name that means nothing."""
    for session in Session.objects.iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
    LogEntry.objects.filter(
        Q(user=user) | Q(content_type__model="user", object_id=str(user.pk))
    ).delete()
    forget_slots_of(user.pk)
    User.objects.filter(pk=user.pk).update(
        username=f"erased-{user.pk}", email="", first_name="", last_name=""
    )
    User.objects.get(pk=user.pk).delete()
    return RetentionBatch({"users": 1}, is_last=True)
