"""The address of every URL of the site, with the keys of rows that exist."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import F, Model
from django.http import HttpResponse
from django.template.backends.django import Template
from django.test import Client
from django.urls import get_resolver

from runs.models import (
    Agent,
    AgentRetention,
    Allowance,
    AnnotationQueue,
    ApiToken,
    Conversation,
    Dataset,
    Decision,
    DeletionJob,
    Delivery,
    Evaluator,
    Experiment,
    ExperimentRun,
    Hook,
    JudgeRequest,
    PromptTemplate,
    Provider,
    ProviderModel,
    QueuedRun,
    Run,
    RunComment,
    RunShare,
    SavedFilter,
    Schedule,
    ScoringRule,
    StepMedia,
    Webhook,
)
from tests.access import Door, doors
from tools.models import (
    AuditEntry,
    Credential,
    McpServer,
    ServiceAccount,
    Tool,
    ToolRevision,
    UploadedDocument,
)

Keys = dict[str, Any]

ERROR_PAGES = ("404.html", "errors/button.html")
"""Templates of the answers 404 and 405."""
SHARE_TOKEN = "a-link-to-the-run"
LOGIN_TOKEN = "a-link-that-signs-in"

BY_STEM: dict[str, type[Model]] = {
    "admin:auth_group": Group,
    "admin:auth_user": User,
    "admin:tools_auditentry": AuditEntry,
    "admin:tools_credential": Credential,
    "admin:tools_mcp": McpServer,
    "admin:tools_restore": ToolRevision,
    "admin:tools_tool": Tool,
    "admin:tools_tool_import_choice": UploadedDocument,
    "agent": Agent,
    "agent-retention": AgentRetention,
    "allowance": Allowance,
    "api-agent": Agent,
    "api-approval": Decision,
    "api-conversation": Conversation,
    "api-credential": Credential,
    "api-mcp-server": McpServer,
    "api-prompt": PromptTemplate,
    "api-queue": AnnotationQueue,
    "api-rule": ScoringRule,
    "api-dataset": Dataset,
    "api-evaluator": Evaluator,
    "api-group": Group,
    "api-experiment": Experiment,
    "api-run": Run,
    "api-provider": Provider,
    "api-schedule": Schedule,
    "api-token": ApiToken,
    "api-tool": Tool,
    "api-webhook": Webhook,
    "approval": Decision,
    "chat": Conversation,
    "dataset": Dataset,
    "deletion-job": DeletionJob,
    "openai-response": Run,
    "delivery": Webhook,
    "prompt": PromptTemplate,
    "evaluator": Evaluator,
    "experiment": Experiment,
    "provider": Provider,
    "queue": AnnotationQueue,
    "hook": Hook,
    "rule": ScoringRule,
    "run": Run,
    "saved-filter": SavedFilter,
    "schedule": Schedule,
    "sub-agent": Agent,
    "token": ApiToken,
    "turn": Run,
    "user": User,
    "webhook": Webhook,
}
"""What the argument `pk` of URLs stands for whose names begin like this."""

BY_ARGUMENT: dict[str, Callable[[], Any]] = {
    "after": lambda: 0,
    "app_label": lambda: "tools",
    "delivery_pk": lambda: first_pk(Delivery),
    "item_pk": lambda: first_pk(QueuedRun),
    "cell_pk": lambda: first_pk(ExperimentRun),
    "kind": lambda: "http",
    "key": lambda: first_pk(Run),
    "model": lambda: Agent.objects.order_by("pk")[0].slug,
    "model_pk": lambda: first_pk(ProviderModel),
    "number": lambda: 1,
    "direction": lambda: "next",
    "comment_pk": lambda: first_pk(RunComment),
    "position": lambda: StepMedia.objects.order_by("pk")[0].position,
    "rest": lambda: "nothing",
    "run": lambda: QueuedRun.objects.order_by("pk")[0].run_id,
    "run_pk": lambda: first_pk(Run),
    "share_pk": lambda: first_pk(RunShare),
    "sub_pk": lambda: Agent.objects.order_by("pk")[1].pk,
    "tool_pk": lambda: first_pk(Tool),
    "url": lambda: "nothing",
    "what": lambda: "request",
}
"""The other arguments."""

BY_NAME: dict[str, Callable[[], Keys]] = {
    **dict.fromkeys(
        ("api-webhook-delivery", "api-webhook-delivery-resend"),
        lambda: {"number": first_pk(Delivery)},
    ),
    **dict.fromkeys(
        ("api-person", "api-person-tokens", "user-tokens"),
        lambda: {"pk": first_pk(ServiceAccount)},
    ),
    "api-person-token": lambda: find_bot_token("number"),
    **dict.fromkeys(
        ("user-token-renew", "user-token-revoke"), lambda: find_bot_token("token_pk")
    ),
    "api-run-comment": lambda: {"number": first_pk(RunComment)},
    **dict.fromkeys(
        ("api-run-fork", "api-run-rerun"),
        lambda: {"pk": Run.objects.get(status="succeeded").pk},
    ),
    "api-run-model-call-request": lambda: {"number": 0},
    "api-run-resume": lambda: {"pk": Run.objects.get(status="failed").pk},
    "api-run-share": lambda: {"number": first_pk(RunShare)},
    "admin:tools_mcp_change": lambda: {"pk": Tool.objects.get(kind="mcp").pk},
    "admin:view_on_site": lambda: {"content_type_id": 1, "object_id": 1},
    "hook-preview": lambda: {"pk": Hook.objects.order_by("pk")[0].agent_id},
    "hook-receive": lambda: {"key": Hook.objects.order_by("pk")[0].key},
    "evaluator-try": lambda: {"kind": "contains"},
    "approve-by-link": lambda: {"token": "no-such-link"},
    "login-link": lambda: {"token": LOGIN_TOKEN},
    "run-answer": lambda: {"pk": Run.objects.get(status="succeeded").pk},
    "run-brief": lambda: {"pk": Run.objects.get(parent_step__isnull=False).pk},
    "run-continue": lambda: {"pk": Run.objects.get(status="succeeded").pk},
    "run-judge": lambda: JudgeRequest.objects.values(
        pk=F("run"), revision_pk=F("revision")
    )[0],
    "run-media": lambda: {"number": 2},  # the step after the first model call
    "run-outline": lambda: {"pk": Run.objects.get(parent_step__isnull=False).pk},
    "run-shared": lambda: {"token": SHARE_TOKEN},
    **dict.fromkeys(
        ("tool-detail", "tool-enable", "tool-revisions", "tool-try"),
        lambda: {"slug": Tool.objects.order_by("pk")[0].slug},
    ),
}
"""Arguments that mean something else in one URL."""

QUERIES: dict[str, str] = {
    "api-run-compare": "?other={run}",
    "admin:autocomplete": "?app_label=tools&model_name=tool&field_name=approvers",
    "agent-export": "?version=1",
    "dataset-cell": "?field=answer",
    "dataset-add-runs": "?run={run}",
    "queue-add": "?run={run}",
    "run-compare": "?a={run}&b={run}",
    "tool-export": "?slug={tool}",
}
"""Without which a GET has nothing to show."""


class Address(NamedTuple):
    """One URL of the site."""

    name: str
    path: str
    """With a query where the page needs one."""


def first_pk(model: type[Model]) -> int:
    """Return the key of the oldest row."""
    return int(model._default_manager.order_by("pk")[0].pk)


def find_bot_token(argument: str) -> Keys:
    """Return the keys of a token of a service account."""
    token = ApiToken.objects.exclude(user__service_account=None).order_by("pk")[0]
    return {"pk": token.user_id, argument: token.pk}


def list_addresses() -> Iterator[Address]:
    """Yield each URL once; those with and without an argument are told apart."""
    seen: dict[str, int] = {}
    for door in doors(get_resolver().url_patterns):
        if door.name == "admin:":  # Django's redirects of old and wrong addresses
            continue
        seen[door.name] = count = seen.get(door.name, 0) + 1
        name = door.name if count == 1 else f"{door.name}-{count}"
        yield Address(name, build_path(door))


def build_path(door: Door) -> str:
    """Return a path that the door's pattern matches."""
    path = door.fill({one: find_key(door.name, one) for one in door.arguments})
    query = QUERIES.get(door.name, "")
    keys = {
        "run": first_pk(Run) if "{run" in query else 0,
        "tool": Tool.objects.order_by("pk")[0].slug if "{tool" in query else "",
    }
    return f"{path}{query.format(**keys)}"


def find_key(name: str, argument: str) -> Any:
    """Return the value of one argument of the URL `name`."""
    special = BY_NAME.get(name, dict)()
    if argument in special:
        return special[argument]
    if argument in {"pk", "id", "object_id"}:
        stem = max(filter(name.startswith, BY_STEM), key=len, default="")
        assert stem, f"Add the URL {name!r} to BY_STEM, and a row of it to the world."
        return first_pk(BY_STEM[stem])
    if argument == "slug":
        return Agent.objects.order_by("pk")[0].slug
    return BY_ARGUMENT[argument]()


def render_nothing(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Answer with empty pages, for sweeps that look only at the status codes.

    A view decides on the status before it renders a template; other tests render them.
    With names only these templates are empty.
    """
    render = Template.render

    def render_others(self: Template, *args: Any, **named: Any) -> str:
        is_empty = not names or self.origin.template_name in names
        return "" if is_empty else render(self, *args, **named)

    monkeypatch.setattr(Template, "render", render_others)


def ask(client: Client, method: str, path: str, form: str = "") -> HttpResponse:
    """Send a request and take back what it changed, cookies included."""
    cookies = deepcopy(client.cookies)
    kind = "application/x-www-form-urlencoded"
    with transaction.atomic():
        answer = client.generic(method, path, form, content_type=kind)
        if answer.streaming:
            answer = HttpResponse(
                b"".join(answer.streaming_content), status=answer.status_code
            )
        transaction.set_rollback(True)
    client.cookies = cookies
    return answer
