"""One row of everything that a URL can name, owned by one person.

With other texts than the default ones, whatever people, models and tools write: see
`tests.browser.seed.hostile`.
"""

import json
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import Group, User
from django.utils import timezone

from runs.engine.types import Reply
from runs.evaluation.gate import GateRules
from runs.evaluation.types import JudgeMessage, JudgeReply
from runs.models import (
    Agent,
    AgentRetention,
    AgentTool,
    Allowance,
    AnnotationQueue,
    ApiToken,
    Conversation,
    Dataset,
    DeletionJob,
    Evaluator,
    EvaluatorRevision,
    HookRequest,
    InputReplay,
    JudgeRequest,
    LoginLink,
    ProviderModel,
    ProviderOutage,
    ReplayedInput,
    Run,
    RunComment,
    RunShare,
    RunTag,
    SavedFilter,
    ScoredRun,
    ScoringRule,
    StepMedia,
)
from runs.services.accounts.tokens import hash_token
from runs.services.annotation.annotate import AnnotationContent, submit_annotation
from runs.services.annotation.claim import claim_next_run
from runs.services.annotation.queued_runs import add_runs_to_queue
from runs.services.datasets.content import ExampleContent, StoredCall
from runs.services.datasets.edit import add_examples, edit_example
from runs.services.datasets.from_run import add_run_to_dataset
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.uploads import store_dataset_upload
from runs.services.evaluators.save import save_evaluator
from runs.services.experiments.advance import (
    create_cells,
    score_ended_cells,
    update_figures,
)
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.gates.edit import GatePlan, save_gate
from runs.services.rules.score_runs import advance_scoring_rule
from runs.services.search.index_runs import index_runs
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import compute_spec_digest, dump_spec, get_or_create_spec
from tests.every_address import LOGIN_TOKEN, SHARE_TOKEN
from tests.make import (
    make_agent,
    make_attempt,
    make_call,
    make_dataset,
    make_decision,
    make_delivery,
    make_hook,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_step,
    make_tool,
    make_version,
    make_webhook,
    make_worker,
)
from tools.accounts.save import create_service_account
from tools.audit.write import write_entry
from tools.definition.save import save_tool
from tools.mcp_offer import Offer
from tools.models import Credential, McpPin, McpServer, McpSignIn, Tool
from tools.openapi.document import OpenApiDocument
from tools.openapi.uploads import store_upload
from tools.secrets import seal

PIXEL = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c000000000100010000020144003b"
)
"""A GIF image."""


class Texts(NamedTuple):
    """What people, models and servers have written."""

    name: str = "plain"
    """Of rows; at most 60 characters."""
    body: str = "Plain text."
    """Of any length."""
    slug: str = "plain"

    @property
    def json(self) -> dict[str, Any]:
        return {self.name: [self.body]}


def make_world(owner: User, group: Group, texts: Texts | None = None) -> None:
    """Make the rows; definitions are shared with the group, which approves calls."""
    texts = texts or Texts()
    tool = make_tools(owner, group, texts)
    agent = make_agents(owner, group, tool, texts)
    conversation = Conversation.objects.create(
        owner=owner, agent=agent, title=texts.name
    )
    waiting = make_waiting_run(agent, group, conversation, texts)
    make_ended_runs(agent, conversation, texts)
    make_hooks(owner, agent, waiting, texts)
    make_examples(owner, group, waiting, texts)
    make_experiment(owner, agent, texts)
    make_annotations(owner, group, texts)
    make_rule(owner, agent, texts)
    make_keys(owner, waiting, texts)
    AgentRetention.objects.create(agent=agent, days=1000)
    make_worker(name=texts.name, host=texts.name)
    while index_runs():
        pass


def make_tools(owner: User, group: Group, texts: Texts) -> Tool:
    """Make a tool with a credential, a tool of an MCP server, and an upload."""
    key = Credential.objects.create(
        owner=owner, name=texts.name, hosts=[texts.name], sealed=seal("s3cret-of-ann")
    )
    tool = make_tool(
        owner,
        name=texts.name,
        slug=texts.slug,
        description=texts.body,
        kind="http",
        config={"url": "http://127.0.0.1:9/orders", "headers": {"x-note": texts.body}},
        credential=key,
        approvers=group,
        last_error=texts.body,
    )
    save_tool(tool, by=owner, note=texts.name)
    server = McpServer.objects.create(
        owner=owner, name=texts.name, url="http://127.0.0.1:9/mcp"
    )
    McpSignIn.objects.create(
        server=server,
        resource=server.url,
        token_endpoint="http://127.0.0.1:9/token",
        client_id=texts.name,
        client_auth="none",
        sealed_access_token=seal("s3cret-token-of-ann"),
        by=owner,
    )
    offered = make_tool(
        owner,
        name=f"mcp {texts.name}"[:64],
        kind="mcp",
        description=texts.body,
        config={"tool": "add"},
        mcp_server=server,
        enabled=False,
    )
    McpPin.objects.create(
        tool=offered,
        accepted=make_offer(texts, "before").model_dump(),
        offered=make_offer(texts, "after").model_dump(),
        noticed_at=timezone.now(),
    )
    for one in (tool, offered):
        share_with(group, one)
    operation = {
        "operationId": texts.name,
        "summary": texts.name,
        "description": texts.body,
        "tags": [texts.name],
        "responses": {},
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": texts.name, "version": "1", "description": texts.body},
        "servers": [{"url": "https://a.example"}],
        "paths": {"/orders": {"get": operation, "delete": operation}},
    }
    store_upload(OpenApiDocument(document), by=owner)
    write_entry("exported", "tool", tool, by=owner, note=texts.name)
    return tool


def make_offer(texts: Texts, when: str) -> Offer:
    """Return what an MCP server says of its tool."""
    return Offer(
        name="add",
        description=f"{texts.body} {when}",
        inputSchema={
            "type": "object",
            "properties": {texts.name: {"type": "string", "description": texts.body}},
        },
        annotations={"title": texts.name},
    )


def make_agents(owner: User, group: Group, tool: Tool, texts: Texts) -> Agent:
    """Make a published agent with a prompt, a provider, a tool and an agent to call."""
    provider = make_provider(owner, name=texts.name, default_model=texts.name)
    provider.set_headers("x-key: s3cret-header-of-ann")
    provider.save()
    ProviderModel.objects.create(provider=provider, name=texts.name)
    now = timezone.now()
    ProviderOutage.objects.create(
        provider=provider,
        started_at=now,
        error_code="unavailable",
        error_message=texts.body,
        probe_at=now + timedelta(hours=1),
    )
    words = [{"role": "system", "template": texts.body.translate(NO_BRACES)}]
    words.append({"role": "user", "template": "{input}"})
    prompt = make_prompt(owner, name=texts.name, messages=words)
    agent = make_agent(
        owner,
        tools=(tool,),
        name=texts.name,
        slug=texts.slug,
        description=texts.body,
        provider=provider,
        prompt=prompt,
    )
    callee = make_agent(owner, name=texts.name, provider=provider)
    AgentTool.objects.create(agent=agent, sub_agent=callee, position=1)
    for one in (provider, prompt, agent, callee):
        share_with(group, one)
    frozen = get_or_create_spec(freeze_agent(agent))
    make_version(agent, by=owner, note=texts.name, spec=frozen)
    return agent


NO_BRACES = {ord("{"): "(", ord("}"): ")"}


def share_with(group: Group, row: Any) -> None:
    """Share a definition with a group."""
    row.visibility = "groups"
    row.save()
    row.groups.add(group)


def make_waiting_run(
    agent: Agent, group: Group, conversation: Conversation, texts: Texts
) -> Run:
    """Make the first run: a call is over, the next one awaits an approval."""
    run = make_run(
        agent=agent,
        status="awaiting_approval",
        conversation=conversation,
        **asked(texts),
    )
    tell(run, texts)
    done = make_step(run, **called(texts), observation=texts.body)
    StepMedia.objects.create(
        step=done, position=1, media_type="image/gif", content=PIXEL
    )
    asking = make_step(
        run, **called(texts), status="awaiting_approval", effect="side_effect"
    )
    make_decision(asking, approvers=group)
    allowance = Allowance.objects.create(
        run=run, tool=texts.name, reason=texts.body, by=agent.owner
    )
    make_decision(
        done,
        answer="approved",
        reason=texts.body,
        by=agent.owner,
        at=timezone.now(),
        approvers=group,
        allowance=allowance,
    )
    make_run(agent=agent, parent_step=done, **asked(texts))
    RunTag.objects.create(run=run, name=texts.name[:40])
    return run


def asked(texts: Texts) -> dict[str, Any]:
    return {
        "title": texts.name,
        "inputs": {"input": texts.body, texts.name: texts.name},
    }


def called(texts: Texts) -> dict[str, Any]:
    return {
        "tool": texts.name[:64],
        "tool_input": texts.json,
        "log": texts.body,
    }


def tell(run: Run, texts: Texts) -> None:
    """Make a reply of the model."""
    reply = Reply(text=texts.body, reasoning=texts.body).model_dump(mode="json")
    make_call(run, reply=reply, model=texts.name)


def make_ended_runs(agent: Agent, chat: Conversation, texts: Texts) -> None:
    """Make a run that succeeded, and one that failed."""
    done = make_run(
        agent=agent,
        status="succeeded",
        conversation=chat,
        output=texts.body,
        **asked(texts),
    )
    tell(done, texts)
    for observation in (texts.body, json.dumps(texts.json), texts.name):
        make_step(done, **called(texts), observation=observation)
    failed = make_run(
        agent=agent, status="failed", error_message=texts.body, **asked(texts)
    )
    make_call(failed)
    make_step(failed, **called(texts), status="failed", observation=texts.body)
    make_attempt(failed, message=texts.body)


def make_examples(owner: User, group: Group, run: Run, texts: Texts) -> None:
    """Make a dataset: a version with an example that is edited, and a file."""
    evaluator = Evaluator(
        owner=owner,
        name=texts.name,
        kind="contains",
        config={"texts": [texts.body]},
        visibility="groups",
    )
    save_evaluator(evaluator, by=owner).groups.add(group)
    dataset = make_dataset(owner, name=texts.name, description=texts.body)
    share_with(group, dataset)
    content = ExampleContent(
        inputs={texts.name: texts.body},
        expected_answer=texts.body,
        expected_calls=(StoredCall(tool=texts.name, tool_input=texts.json),),
        tags=(texts.name[:40],),
    )
    add_run_to_dataset(run, dataset, content, by=owner)
    save_dataset_version(dataset, seen=0, by=owner)
    edited = content.model_copy(update={"expected_answer": f"{texts.body} more"})
    edit_example(dataset, 1, edited, by=owner)
    dataset.refresh_from_db()
    table = json.dumps({texts.name: texts.body, "answer": texts.name})
    store_dataset_upload(
        dataset, by=owner, name=f"{texts.name}.jsonl", content=table.encode()
    )


def make_experiment(owner: User, agent: Agent, texts: Texts) -> None:
    """Make an experiment whose first run has a score."""
    dataset = make_dataset(owner, name=texts.name)
    content = ExampleContent(inputs={"input": texts.body}, expected_answer=texts.body)
    add_examples(dataset, [content], by=owner)
    save_dataset_version(dataset, seen=0, by=owner)
    dataset.refresh_from_db()
    experiment = create_experiment(
        dataset,
        [CandidateChoice(agent, agent.versions.get())],
        list(EvaluatorRevision.objects.all()),
        by=owner,
        plan=ExperimentPlan(),
        name=texts.name,
    )
    create_cells(experiment)
    run = Run.objects.filter(status="succeeded", owner=owner)[0]
    experiment.cells.update(run=run, state="started")
    score_ended_cells(experiment)
    update_figures(experiment, is_changed=True)
    JudgeRequest.objects.create(
        run=run,
        revision=experiment.evaluators.all()[0],
        provider=texts.name,
        model=texts.name,
        messages=[JudgeMessage(role="user", text=texts.body).model_dump()],
        replies=[
            JudgeReply(text=texts.body, cost=0.1, seconds=2.5).model_dump(),
            JudgeReply(problem=texts.body).model_dump(),
        ],
    )
    make_gate(owner, agent, dataset, run)


def make_gate(owner: User, agent: Agent, dataset: Dataset, run: Run) -> None:
    """Make a gate, and a replay of a real input."""
    rules = GateRules(must_pass_tag="t", max_p95_seconds=60, max_cost_increase=20)
    plan = GatePlan(dataset, list(Evaluator.objects.filter(owner=owner)), rules)
    save_gate(agent, plan, by=owner)
    digest = compute_spec_digest(dump_spec(freeze_agent(agent)))
    replay = InputReplay.objects.create(agent=agent, owner=owner, digest=digest)
    ReplayedInput.objects.create(replay=replay, recorded=run, run=run)


def make_annotations(owner: User, group: Group, texts: Texts) -> None:
    """Make a queue with a run that is scored, and others that wait."""
    queue = AnnotationQueue.objects.create(
        owner=owner,
        name=texts.name,
        question=texts.body[:200],
        guidelines=texts.body,
        scale=[texts.name[:30], "good"],
        passing_mark=2,
        labels=[texts.name],
        people_per_run=2,
        dataset=Dataset.objects.filter(owner=owner)[0],
    )
    share_with(group, queue)
    runs = list(Run.objects.filter(owner=owner))
    add_runs_to_queue(queue, runs, by=owner, reason=texts.name)
    item = claim_next_run(queue, by=owner)
    assert item is not None
    said = AnnotationContent(1, (texts.name,), texts.body, texts.body)
    submit_annotation(item, said, by=owner)


def make_rule(owner: User, agent: Agent, texts: Texts) -> None:
    """Make a rule with a run that is scored, and a problem."""
    rule = ScoringRule.objects.create(owner=owner, name=texts.name, agent=agent)
    rule.evaluators.set(Evaluator.objects.filter(owner=owner))
    run = Run.objects.filter(status="succeeded", owner=owner)[0]
    ScoredRun.objects.create(rule=rule, run=run)
    advance_scoring_rule(rule)
    ScoringRule.objects.filter(pk=rule.pk).update(problem=texts.body)


def make_hooks(owner: User, agent: Agent, run: Run, texts: Texts) -> None:
    """Make a schedule, a webhook with a delivery that failed, and an incoming one."""
    hook = make_hook(owner, agent=agent, name=texts.name)
    HookRequest.objects.create(
        hook=hook,
        run=run,
        outcome="refused",
        reason=texts.body[:200],
        created_at=timezone.now(),
    )
    make_schedule(owner, agent=agent, name=texts.name)
    webhook = make_webhook(
        owner, name=texts.name, url=f"https://a.example/{texts.name}"
    )
    make_delivery(webhook, run, status="failed", error=texts.body[:200])


def make_keys(owner: User, run: Run, texts: Texts) -> None:
    """Make what opens the site or a run, and a saved filter."""
    soon = timezone.now() + timedelta(hours=1)
    ApiToken.objects.create(user=owner, name=texts.name, digest=hash_token("token"))
    bot = User(username=f"bot-{owner.pk}")
    create_service_account(bot, description="Nightly report")
    ApiToken.objects.create(user=bot, digest=hash_token("bot"))
    LoginLink.objects.create(
        user=owner, digest=hash_token(LOGIN_TOKEN), expires_at=soon
    )
    RunShare.objects.create(
        run=run, by=owner, digest=hash_token(SHARE_TOKEN), expires_at=soon
    )
    RunComment.objects.create(run=run, author=owner, text=texts.name)
    DeletionJob.objects.create(
        purpose=DeletionJob.Purpose.RULES, by=owner, created_at=timezone.now()
    )
    SavedFilter.objects.create(owner=owner, name=texts.name, query=f"q={texts.name}")
