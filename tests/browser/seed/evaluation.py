"""What evaluation pages show: a dataset, two experiments, a gate, a queue, a rule.

Nothing is called: the answers are written here, and scored as a worker would do.
"""

import random
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils import timezone

from runs.evaluation.gate import GateRules
from runs.models import (
    Agent,
    AgentVersion,
    AnnotationQueue,
    Dataset,
    DatasetVersion,
    Evaluator,
    Experiment,
    ExperimentRun,
    Run,
    RunScore,
    ScoredRun,
    ScoringRule,
)
from runs.services.annotation.annotate import AnnotationContent, submit_annotation
from runs.services.annotation.claim import claim_next_run
from runs.services.annotation.queued_runs import add_runs_to_queue
from runs.services.datasets.content import ExampleContent, StoredCall
from runs.services.datasets.edit import add_examples, edit_example
from runs.services.datasets.save_version import save_dataset_version
from runs.services.evaluators.save import save_evaluator
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.gates.edit import GatePlan, save_gate
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import make_dataset, make_step
from tests.makers.experiments import turn

RUNNING_SHARE = 0.6
"""Of the started runs of the experiment that is running, those that have ended."""


class Ticket(NamedTuple):
    """An example, and what the candidates answer to it."""

    question: str
    expected: str
    tag: str
    wrong: str
    """An answer that fails."""
    failing: str = ""
    """Places of the candidates that give it."""


REFUND = "The second payment was refunded. The money arrives within 5 business days."
RESET = "Use the link in the e-mail to set a new password; it works for one hour."
PARCEL = "The parcel is with the carrier. Its number is in the last e-mail."
INVOICE = "The invoice was sent again to the address of the account."
TICKETS = (
    Ticket(
        "Customer 5520 paid order o_77120 twice. Refund the second payment.",
        REFUND,
        "refund",
        "The first payment was refunded. Ask your bank when it arrives.",
        "1",
    ),
    Ticket(
        "Refund 30% because the parcel arrived damaged.",
        "30% was refunded, as the parcel arrived damaged.",
        "refund",
        "The full amount was refunded.",
        "1",
    ),
    Ticket(
        "发票金额开错了，请退款后重新开具",
        "已退款，并重新开具了发票。",
        "refund",
        "已重新开具发票。",
        "1",
    ),
    Ticket(
        "Cannot log in after the password change", RESET, "login", "Try again.", "0"
    ),
    Ticket(
        "我的订单三天没有物流更新",
        "包裹已在承运商处，单号在最近一封邮件里。",
        "shipping",
        "请等待。",
        "0",
    ),
    Ticket("Where is my parcel? It says delivered.", PARCEL, "shipping", "Wait.", "0"),
    Ticket("Send the November invoice again", INVOICE, "invoice", "Done.", "01"),
    Ticket("能不能把发票寄到公司地址？", "可以，将寄到公司地址。", "invoice", "不能"),
    Ticket("Change the billing address to München", "Changed.", "account", "No.", "0"),
    Ticket("Delete my account and all data (GDPR)", "It was deleted.", "account", "No"),
    Ticket("What are your opening hours on Sunday?", "10 to 18.", "faq", "9 to 5."),
    Ticket("The coupon WINTER20 does not work", "It has ended.", "faq", "It does."),
    Ticket("Upgrade from Team to Business", "Upgraded, prorated.", "billing", "No."),
    Ticket("Two accounts with the same e-mail", "They were merged.", "account", "No."),
)


def evaluation(admin: User, mara: User, agent: Agent) -> None:
    """Make everything for one agent, whose draft has another model than its version."""
    spec = get_or_create_spec(freeze_agent(agent))
    AgentVersion.objects.filter(agent=agent).update(spec=spec)
    agent.model = "llama3.3:70b"
    agent.save()
    dataset = build_dataset(admin)
    evaluators = build_evaluators(admin)
    compared(admin, agent, dataset, evaluators)
    running(admin, agent, dataset, evaluators)
    rules = GateRules(must_pass_tag="refund", max_p95_seconds=10, max_cost_increase=20)
    plan = GatePlan(dataset, evaluators, rules, repetitions=2)
    save_gate(agent, plan, by=admin)
    queue = build_queue(admin, mara, agent, dataset)
    build_rule(admin, agent, evaluators[:2], queue)


def build_dataset(admin: User) -> Dataset:
    """Make a dataset with three versions, and edits that belong to none yet."""
    dataset = make_dataset(
        admin,
        name="Support tickets",
        description="Real tickets with the answer that a person approved.",
        visibility="everyone",
    )
    contents = [
        ExampleContent(
            inputs={"input": ticket.question},
            expected_answer=ticket.expected,
            expected_calls=(StoredCall(tool="refund_payment"),)
            if ticket.tag == "refund"
            else (),
            tags=(ticket.tag,),
        )
        for ticket in TICKETS
    ]
    early = contents[0].model_copy(update={"expected_answer": "It was refunded."})
    add_examples(dataset, [early, *contents[1:8]], by=admin)
    save(dataset, admin)
    edit_example(dataset, 1, contents[0], by=admin)
    save(dataset, admin)
    add_examples(dataset, contents[8:], by=admin)
    save(dataset, admin)
    for version in dataset.versions.all():
        at = timezone.now() - timedelta(days=4 * (4 - version.number))
        DatasetVersion.objects.filter(pk=version.pk).update(at=at)
    return dataset


def save(dataset: Dataset, by: User) -> None:
    save_dataset_version(dataset, seen=dataset.version, by=by)
    dataset.refresh_from_db()


def build_evaluators(admin: User) -> list[Evaluator]:
    """Make evaluators that call nothing."""
    return [
        save_evaluator(
            Evaluator(owner=admin, name=name, kind=kind, config=config), by=admin
        )
        for name, kind, config in (
            ("Close to the expected answer", "similarity", {"threshold": 0.6}),
            ("Expected calls", "tool-calls", {"match": "superset"}),
            ("Under 8 s and $0.01", "limits", {"seconds": 8, "cost": 0.01}),
        )
    ]


def compared(
    admin: User, agent: Agent, dataset: Dataset, evaluators: list[Evaluator]
) -> None:
    """Make an experiment that has ended: a version and the draft, each twice."""
    experiment = begin(
        *(admin, agent, dataset, evaluators), name="Draft against version 1"
    )
    while Experiment.objects.get(pk=experiment.pk).is_running:
        turn(experiment)
        for cell in started_cells(experiment):
            end(cell)
    now = timezone.now()
    Experiment.objects.filter(pk=experiment.pk).update(
        created_at=now - timedelta(minutes=52),
        ended_at=now - timedelta(minutes=45, seconds=19),
    )


def running(
    admin: User, agent: Agent, dataset: Dataset, evaluators: list[Evaluator]
) -> None:
    """Make an experiment of which some runs have ended, and others are running."""
    experiment = begin(
        *(admin, agent, dataset, evaluators),
        name="With a larger model",
        model="gemma3:27b",
    )
    turn(experiment)
    cells = list(started_cells(experiment))
    for cell in cells[: int(len(cells) * RUNNING_SHARE)]:
        end(cell)
    turn(experiment)
    later = timezone.now() + timedelta(hours=1)
    for cell in cells[int(len(cells) * RUNNING_SHARE) :]:
        Run.objects.filter(pk=cell.run_id).update(
            status="running", started_at=timezone.now(), lease_until=later
        )
    Experiment.objects.filter(pk=experiment.pk).update(
        created_at=timezone.now() - timedelta(seconds=95)
    )


def begin(
    admin: User,
    agent: Agent,
    dataset: Dataset,
    evaluators: list[Evaluator],
    *,
    name: str,
    model: str = "",
) -> Experiment:
    """Create an experiment of the published version and the draft, each twice."""
    return create_experiment(
        dataset,
        [
            CandidateChoice(agent, agent.versions.first()),
            CandidateChoice(agent, changes=CandidateChanges(model=model)),
        ],
        [one.revisions.get() for one in evaluators],
        by=admin,
        plan=ExperimentPlan(repetitions=2, concurrency=20, budget=Decimal(2)),
        name=name,
    )


def started_cells(experiment: Experiment) -> list[ExperimentRun]:
    rows = experiment.cells.filter(state=ExperimentRun.State.STARTED)
    return list(rows.select_related("example", "candidate", "run"))


def end(cell: ExperimentRun) -> None:
    """End the run of a cell: with the ticket's answer, a wrong one, or an error."""
    ticket, place = TICKETS[cell.example.number - 1], cell.candidate.position
    is_wrong = str(place) in ticket.failing
    seconds = random.uniform(2, 6) + place
    if cell.example.expected_calls and not is_wrong:
        asked = {"payment_id": "pay_9f31", "amount": 49}
        make_step(cell.run, tool="refund_payment", tool_input=asked, elapsed=0.4)
    fields = {
        "status": "succeeded",
        "output": ticket.wrong if is_wrong else ticket.expected,
        "cost": Decimal(random.randint(19, 48 + 12 * place)) / 10_000,
        "input_tokens": random.randint(900, 2400),
        "output_tokens": random.randint(40, 160),
    }
    if ticket.tag == "billing" and cell.repetition == 0 and place:
        fields |= {
            "status": "failed",
            "output": "",
            "error_code": "timeout",
            "error_message": "The provider did not answer within 60 s.",
        }
    now = timezone.now()
    begun = now - timedelta(seconds=seconds)
    Run.objects.filter(pk=cell.run_id).update(started_at=begun, ended_at=now, **fields)


def build_queue(
    admin: User, mara: User, agent: Agent, dataset: Dataset
) -> AnnotationQueue:
    """Make a queue of real runs, some of them scored."""
    queue = AnnotationQueue.objects.create(
        owner=admin,
        name="Answers to tickets",
        question="How good is the answer?",
        guidelines="Would you send it to the customer as it is?",
        scale=["harmful", "wrong", "partly", "good", "perfect"],
        labels=["Wrong fact", "Tone", "Too long", "Wrong language"],
        people_per_run=2,
        visibility="everyone",
        dataset=dataset,
    )
    runs = agent.runs.filter(status="succeeded").exclude(source=Run.Source.EXPERIMENT)
    add_runs_to_queue(queue, list(runs.order_by("-pk")[:9]), by=admin)
    for by, marks in ((mara, (4, 5, 2, 4)), (admin, (4, 3))):
        for mark in marks:
            item = claim_next_run(queue, by=by)
            assert item is not None
            labels = ("Wrong fact",) if mark < 4 else ()
            submit_annotation(item, AnnotationContent(mark, labels), by=by)
    return queue


def build_rule(
    admin: User, agent: Agent, evaluators: list[Evaluator], queue: AnnotationQueue
) -> None:
    """Make a rule that has scored the runs of the week."""
    rule = ScoringRule.objects.create(
        owner=admin,
        name="Answers of the week",
        agent=agent,
        percent=50,
        daily_budget=Decimal(1),
        queue=queue,
    )
    rule.evaluators.set(evaluators)
    runs = agent.runs.filter(status="succeeded", is_test=False)
    scored = ScoredRun.objects.bulk_create(
        ScoredRun(
            rule=rule,
            run=run,
            state=ScoredRun.State.DONE,
            passed=place % 7 != 3,
            value=0.4 if place % 7 == 3 else 0.9,
            scored_at=run.ended_at,
        )
        for place, run in enumerate(runs.exclude(source=Run.Source.EXPERIMENT))
    )
    revision = evaluators[0].revisions.get()
    RunScore.objects.bulk_create(
        RunScore(
            scored=one,
            revision=revision,
            value=one.value,
            passed=one.passed,
            explanation="Like the expected answer: 40%." if not one.passed else "",
        )
        for one in scored
    )
