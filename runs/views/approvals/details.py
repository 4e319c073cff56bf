"""A decision with its context, for the approvals page and the run's banner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, QuerySet

from runs.forms.edited_arguments import (
    EditedArgumentsForm,
    build_edit_form,
    parse_edited_fields,
    parse_edited_text,
)
from runs.models import AgentStep, Allowance, Decision, Run
from runs.services.approvals.answer import tool_of_step
from runs.services.errors import FieldError
from runs.ui.reveal_invisible import RevealedValue, dump_readable_json, reveal_value
from runs.ui.summaries import get_first_line, summarize_input

MAX_PRECEDING_STEPS = 4
MAX_EARLIER_DECISIONS = 5

STEP_RELATIONS = (
    "step__run__agent",
    "step__run__owner",
    "step__run__worker",
    "step__tool_ref",
)
DECISION_RELATIONS = ("step__model_call", "approvers", "by", "allowance")
DECISION_ORDER = (F("expires_at").asc(nulls_last=True), "pk")
"""The most urgent first."""


@dataclass(frozen=True)
class DecisionDetail:
    """A decision with everything that helps to make it."""

    decision: Decision
    may_answer: bool
    exact: RevealedValue
    text: str
    """The arguments as they can be edited."""
    words: str
    """The arguments in a line."""
    model_reason: str = ""
    """What the model wrote before the call."""
    preceding_steps: Sequence[AgentStep] = ()
    """Each with its `row` number on the run page."""
    earlier: Sequence["EarlierDecision"] = ()
    """Earlier decisions about the same tool of the same agent."""
    similar_count: int = 0
    """Other open decisions of the run about the same tool."""
    allowance: Allowance | None = None
    """The approval of all calls of this tool in the run, if there is one."""
    edited_arguments: RevealedValue | None = None
    """The arguments that a person entered instead."""
    errors: Sequence[FieldError] = ()
    """What is wrong with the edited arguments."""
    reason: str = ""
    """The note of a refused form."""
    is_for_whole_run: bool = False
    """Whether a refused form covered the whole run."""
    is_edited: bool = False
    """Whether `text` comes from a refused form."""

    typed: Mapping[str, str] | None = None
    """The refused form."""

    @cached_property
    def edit_form(self) -> EditedArgumentsForm | None:
        """A field for each argument; None if they can only be edited as text."""
        form = build_decision_form(self.decision, self.typed)
        if form is not None and form.is_bound:
            form.add_refusals(self.errors)
            form.focus_error()
        return form

    @property
    def listed_errors(self) -> Sequence[FieldError]:
        """The errors that are not shown at a field."""
        form = self.edit_form
        if form is None or not form.is_bound:
            return self.errors
        return [FieldError("", str(error)) for error in form.non_field_errors()]

    @property
    def is_edited_as_json(self) -> bool:
        return self.typed is not None and self.typed.get("edit_as") == "json"

    @property
    def is_approval(self) -> bool:
        """Whether it is about a call to be made, not about an unknown outcome."""
        return self.decision.question == Decision.Question.APPROVAL

    @property
    def number(self) -> int:
        """Number of the step on the run page."""
        step = self.decision.step
        return step.index + step.model_call.number + 2

    @property
    def key(self) -> str:
        """The idempotency key the call carries."""
        return f"{self.decision.step.run_id}:{self.decision.step.index}"

    @property
    def is_agent(self) -> bool:
        """Whether the call runs another agent: no tool of the library."""
        step = self.decision.step
        return step.tool_ref_id is None and step.effect == "idempotent"

    @property
    def raw(self) -> str:
        """The arguments for the Copy button."""
        shown = self.decision.shown.get("tool_input")
        return shown if isinstance(shown, str) else dump_readable_json(shown)

    @property
    def tool_summary(self) -> str:
        """The first sentence of the tool's description."""
        return summarize_tool(self.decision.step)

    @property
    def target(self) -> str:
        """What the call reaches, as of when approval was requested."""
        return str(self.decision.shown.get("target", ""))

    def with_typed_answer(
        self, typed: Mapping[str, str], errors: Sequence[FieldError]
    ) -> "DecisionDetail":
        return replace(
            self,
            text=typed.get("edited", self.text),
            errors=errors,
            reason=typed.get("reason", ""),
            is_for_whole_run="alike" in typed,
            is_edited=True,
            typed=typed,
        )


@dataclass(frozen=True)
class DecisionRow:
    decision: Decision
    may_answer: bool = False

    @property
    def words(self) -> str:
        return summarize_input(self.decision.shown.get("tool_input"))

    @property
    def tool_summary(self) -> str:
        """The first sentence of the tool's description."""
        return summarize_tool(self.decision.step)


@dataclass(frozen=True)
class EarlierDecision:
    decision: Decision
    words: str


def summarize_tool(step: AgentStep) -> str:
    """Return the first sentence of a tool's description, without its full stop."""
    said = get_first_line(step.tool_ref.description) if step.tool_ref else ""
    return said.partition(". ")[0].rstrip(".")


def query_open_decisions(user: User, **only: Any) -> QuerySet[Decision]:
    """Return the open decisions that `user` may see, most urgent first."""
    rows = Decision.objects.visible_to(user).open().filter(**only)
    return select_decision_relations(rows).order_by(*DECISION_ORDER)


def select_decision_relations(rows: QuerySet[Decision]) -> QuerySet[Decision]:
    return rows.select_related(*STEP_RELATIONS, *DECISION_RELATIONS)


def list_run_decisions(run: Run, user: User) -> list[DecisionDetail]:
    """Return the open decisions of one run, in the order of its calls."""
    if not run.needs_a_person:
        return []
    rows = query_open_decisions(user, step__run=run).order_by("step__index")
    return [build_decision_detail(decision, user) for decision in rows]


def list_run_allowances(run: Run) -> list[Allowance]:
    """Return the approvals for the whole run, until it is over."""
    if run.is_over:
        return []
    rows = Allowance.objects.filter(run=run, revoked_at=None)
    return list(rows.select_related("by"))


def build_decision_detail(decision: Decision, user: User) -> DecisionDetail:
    step, arguments = decision.step, decision.shown.get("tool_input")
    can = Decision.objects.answerable_by(user).filter(pk=decision.pk)
    edited = decision.edited_input
    return DecisionDetail(
        decision=decision,
        may_answer=not decision.answer and can.exists(),
        exact=reveal_value(arguments),
        text=arguments if isinstance(arguments, str) else dump_readable_json(arguments),
        words=summarize_input(arguments),
        model_reason=get_first_line(step.log.removeprefix("Thought:")),
        preceding_steps=list_preceding_steps(step) if step.run_id else (),
        earlier=list_earlier_decisions(decision, user),
        similar_count=query_similar_decisions(decision).count(),
        allowance=Allowance.objects.filter(
            run=step.run_id, tool=step.tool, revoked_at=None
        ).first(),
        edited_arguments=reveal_value(edited) if edited is not None else None,
    )


def list_preceding_steps(step: AgentStep) -> Sequence[AgentStep]:
    """Return the last steps before `step`, each with its `row` on the run page."""
    rows = AgentStep.objects.filter(run=step.run_id, index__lt=step.index)
    rows = rows.annotate(row=F("index") + F("model_call__number") + 2)
    return list(rows.order_by("-index")[:MAX_PRECEDING_STEPS])[::-1]


def query_similar_decisions(decision: Decision) -> QuerySet[Decision]:
    """Return the other open decisions of the run about the same tool."""
    rows = Decision.objects.open().filter(
        question=decision.question,
        step__run=decision.step.run_id,
        step__tool=decision.step.tool,
    )
    return rows.exclude(pk=decision.pk)


def list_earlier_decisions(decision: Decision, user: User) -> list[EarlierDecision]:
    """Return the latest decisions about this tool that `user` may see."""
    rows = Decision.objects.visible_to(user).filter(
        step__run__agent=decision.step.run.agent_id, step__tool=decision.step.tool
    )
    rows = rows.exclude(answer="").exclude(pk=decision.pk).exclude(answer="withdrawn")
    found = rows.select_related("by").order_by("-at")[:MAX_EARLIER_DECISIONS]
    return [
        EarlierDecision(one, summarize_input(one.shown.get("tool_input")))
        for one in found
    ]


def build_decision_form(
    decision: Decision, typed: Mapping[str, str] | None = None
) -> EditedArgumentsForm | None:
    """Return the form of a call's arguments, with the fields of a refused one."""
    spec, shown = tool_of_step(decision.step), decision.shown.get("tool_input")
    schema = spec.args_schema if spec else None
    form = build_edit_form(schema, shown, key=decision.pk)
    if form is None or typed is None or form.schema is None:
        return form
    if typed.get("edit_as") != "fields":
        return form
    return EditedArgumentsForm(typed, schema=form.schema, shown=shown, key=decision.pk)


def parse_edited_input(decision: Decision, sent: Mapping[str, str]) -> Any:
    """Return the edited arguments; None if nothing was changed.

    Raise `ArgumentsRefused`.
    """
    shown = decision.shown.get("tool_input")
    if sent.get("edit_as") == "fields":
        form = build_decision_form(decision, sent)
        return form and parse_edited_fields(form, shown)
    text = sent.get("edited")
    return None if text is None else parse_edited_text(text, shown)
