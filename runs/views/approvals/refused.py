"""Refused answers, shown again with what was typed; of a page, by its session."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from runs.htmx import HtmxRequest
from runs.services.errors import ArgumentsRefused, FieldError
from runs.views.approvals.details import DecisionDetail
from tools.secrets import SecretUnreadable, seal, unseal

REFUSED_KEY = "refused-answer"

Refusals = Mapping[int, Sequence[FieldError]]
"""What is wrong with the typed answers, by the keys of their decisions."""
NO_REFUSALS: Refusals = MappingProxyType({})


def keep_refused_answer(
    request: HtmxRequest, pk: int, refused: ArgumentsRefused
) -> None:
    """Keep what was typed about a decision until a page shows it."""
    kept = seal(json.dumps([request.POST.dict(), refused.errors]))
    request.session[REFUSED_KEY] = [pk, kept]


def show_refused_answer(
    request: HtmxRequest, questions: Sequence[DecisionDetail]
) -> list[DecisionDetail]:
    """Return the decisions, one of them with the answer that was refused, once."""
    pk, kept = request.session.get(REFUSED_KEY, [None, ""])
    if pk not in [one.decision.pk for one in questions]:
        return list(questions)
    del request.session[REFUSED_KEY]
    try:
        typed, errors = json.loads(unseal(kept))
    except SecretUnreadable:
        return list(questions)
    return [
        one.with_typed_answer(typed, [FieldError(*error) for error in errors])
        if one.decision.pk == pk
        else one
        for one in questions
    ]


def show_typed_answers(
    questions: Sequence[DecisionDetail], typed: Mapping[str, str], refusals: Refusals
) -> list[DecisionDetail]:
    """Return the decisions, those in `refusals` with what was typed."""
    return [
        one.with_typed_answer(typed, refusals[one.decision.pk])
        if one.decision.pk in refusals
        else one
        for one in questions
    ]
