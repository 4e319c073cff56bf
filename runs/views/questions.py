"""A question to a person, as its page and the run's banner show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, QuerySet

from runs.models import AgentStep, Allowance, Decision, Run
from runs.services.errors import FieldError
from runs.views.exact import Exact, as_json, exact
from runs.views.plain_words import first_line, words_of_input

LED_TO_IT = 4
EARLIER = 5

NEEDS = ("step__run__agent", "step__run__owner", "step__run__worker", "step__tool_ref")
NEEDS_TOO = ("step__model_call", "approvers", "by", "allowance")


@dataclass(frozen=True)
class Question:
    """One question with all that helps to answer it."""

    decision: Decision
    may_answer: bool
    exact: Exact
    text: str
    """The arguments as they can be edited."""
    words: str
    """The arguments in a line."""
    why: str = ""
    """The model's own words before the call."""
    before: Sequence[AgentStep] = ()
    """What led to it, each with its `row` on the run's page."""
    earlier: Sequence["Earlier"] = ()
    """Answers to the same tool of the same agent before."""
    alike: int = 0
    """Other open questions of the run about the same tool."""
    allowance: Allowance | None = None
    """The yes for the whole run that is in force for this tool."""
    ran: Exact | None = None
    """The arguments a person put in their place."""
    errors: Sequence[FieldError] = ()
    """What is wrong with arguments that were typed."""
    reason: str = ""
    """The note that was typed with them."""
    also: bool = False
    """Whether the typed answer was for the whole run."""
    is_edited: bool = False
    """Whether `text` was typed by the person."""

    @property
    def is_approval(self) -> bool:
        """Whether a yes or no is asked for, not what became of a call."""
        return self.decision.question == Decision.Question.APPROVAL

    @property
    def number(self) -> int:
        """Number of the step on the run's page."""
        step = self.decision.step
        return step.index + step.model_call.number + 2

    @property
    def key(self) -> str:
        """The idempotency key the call carries."""
        return f"{self.decision.step.run_id}:{self.decision.step.index}"

    @property
    def is_agent(self) -> bool:
        """Whether the call is one of another agent: it has no tool of the library."""
        step = self.decision.step
        return step.tool_ref_id is None and step.effect == "idempotent"

    @property
    def raw(self) -> str:
        """The arguments as a button copies them."""
        shown = self.decision.shown.get("tool_input")
        return shown if isinstance(shown, str) else as_json(shown)

    @property
    def says(self) -> str:
        """What the tool does, in plain words."""
        return words_of_tool(self.decision.step)

    @property
    def target(self) -> str:
        """What the call reaches, as it was when it was asked about."""
        return str(self.decision.shown.get("target", ""))

    def typed(
        self, text: str, errors: Sequence[FieldError], *, reason: str, also: bool
    ) -> "Question":
        """Return the question with what a person typed and what is wrong with it."""
        return replace(
            self, text=text, errors=errors, reason=reason, also=also, is_edited=True
        )


@dataclass(frozen=True)
class Asked:
    """A question in a line of a list."""

    decision: Decision
    may_answer: bool = False

    @property
    def words(self) -> str:
        """The arguments in a line."""
        return words_of_input(self.decision.shown.get("tool_input"))

    @property
    def says(self) -> str:
        """What the tool does, in plain words."""
        return words_of_tool(self.decision.step)


@dataclass(frozen=True)
class Earlier:
    """An answer that was given before."""

    decision: Decision
    words: str


def words_of_tool(step: AgentStep) -> str:
    """Return the first sentence that is said about a tool, without its full stop."""
    said = first_line(step.tool_ref.description) if step.tool_ref else ""
    return said.partition(". ")[0].rstrip(".")


def open_questions(user: User, **only: Any) -> QuerySet[Decision]:
    """Return what waits for `user`, or may be seen by them; the most urgent first."""
    rows = Decision.objects.visible_to(user).open().filter(**only)
    return with_rows(rows).order_by(F("expires_at").asc(nulls_last=True), "pk")


def with_rows(rows: QuerySet[Decision]) -> QuerySet[Decision]:
    """Return decisions with the rows their pages show."""
    return rows.select_related(*NEEDS, *NEEDS_TOO)


def questions_of_run(run: Run, user: User) -> list[Question]:
    """Return the open questions of one run, in call order."""
    if not run.needs_a_person:
        return []
    rows = open_questions(user, step__run=run).order_by("step__index")
    return [question_of(decision, user) for decision in rows]


def allowances_of(run: Run) -> list[Allowance]:
    """Return what is allowed for the whole run, while that matters."""
    if run.is_over:
        return []
    rows = Allowance.objects.filter(run=run, revoked_at=None)
    return list(rows.select_related("by"))


def question_of(decision: Decision, user: User) -> Question:
    """Return a question with what led to it."""
    step, arguments = decision.step, decision.shown.get("tool_input")
    can = Decision.objects.answerable_by(user).filter(pk=decision.pk)
    edited = decision.edited_input
    return Question(
        decision=decision,
        may_answer=not decision.answer and can.exists(),
        exact=exact(arguments),
        text=arguments if isinstance(arguments, str) else as_json(arguments),
        words=words_of_input(arguments),
        why=first_line(step.log.removeprefix("Thought:")),
        before=led_to(step) if step.run_id else (),
        earlier=earlier_answers(decision, user),
        alike=others_alike(decision).count(),
        allowance=Allowance.objects.filter(
            run=step.run_id, tool=step.tool, revoked_at=None
        ).first(),
        ran=exact(edited) if edited is not None else None,
    )


def led_to(step: AgentStep) -> Sequence[AgentStep]:
    """Return the last steps before `step`, each with its number on the run's page."""
    rows = AgentStep.objects.filter(run=step.run_id, index__lt=step.index)
    rows = rows.annotate(row=F("index") + F("model_call__number") + 2)
    return list(rows.order_by("-index")[:LED_TO_IT])[::-1]


def others_alike(decision: Decision) -> QuerySet[Decision]:
    """Return the other open questions of the run about the same tool."""
    rows = Decision.objects.open().filter(
        question=decision.question,
        step__run=decision.step.run_id,
        step__tool=decision.step.tool,
    )
    return rows.exclude(pk=decision.pk)


def earlier_answers(decision: Decision, user: User) -> list[Earlier]:
    """Return how the same call was answered lately, where `user` may see that."""
    rows = Decision.objects.visible_to(user).filter(
        step__run__agent=decision.step.run.agent_id, step__tool=decision.step.tool
    )
    rows = rows.exclude(answer="").exclude(pk=decision.pk).exclude(answer="withdrawn")
    found = rows.select_related("by").order_by("-at")[:EARLIER]
    return [Earlier(one, words_of_input(one.shown.get("tool_input"))) for one in found]
