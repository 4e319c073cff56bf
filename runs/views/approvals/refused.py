"""A refused answer, kept in the session for the page that it was sent from."""

import json
from collections.abc import Sequence

from runs.htmx import HtmxRequest
from runs.services.errors import ArgumentsRefused, FieldError
from runs.views.approvals.details import DecisionDetail
from tools.secrets import SecretUnreadable, seal, unseal

REFUSED_KEY = "refused-answer"


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
