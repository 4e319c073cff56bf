"""Store what judges asked models, and the replies, beside the runs that they scored."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.contrib.auth.models import User

from runs.evaluation.registry import EVALUATOR_KINDS
from runs.evaluation.types import JudgeExchange, JudgeReply
from runs.models import Evaluator, EvaluatorRevision, JudgeRequest, Provider, Run
from tools.text.translatable import encode_stored_text, translatable

MAX_NAME_CHARS = 200


class JudgedRun(NamedTuple):
    """What a judge asked about a run; nothing, if it needed no model to refuse it."""

    run: int
    revision: EvaluatorRevision
    exchanges: Sequence[JudgeExchange]
    baseline: int | None = None
    """The run that it was compared with."""


def is_judge(evaluator: Evaluator | EvaluatorRevision) -> bool:
    """Whether the evaluator asks a model."""
    kind = EVALUATOR_KINDS.get(evaluator.kind)
    return kind is not None and kind.needs == "model"


def get_judge_provider(judge: Evaluator | EvaluatorRevision) -> str:
    """Return the slug of the provider that it asks; empty if its kind has none."""
    return str(judge.config.get("provider", ""))


def find_judge_problem(judge: Evaluator | EvaluatorRevision, *, owner: User) -> str:
    """Return why a judge of `owner` cannot ask its provider; empty if it can."""
    slug = get_judge_provider(judge)
    if not slug or not is_judge(judge):
        return ""
    is_usable = Provider.objects.usable_by(owner).filter(slug=slug).exists()
    return "" if is_usable else describe_missing_provider(slug)


def describe_missing_provider(slug: str) -> str:
    return translatable(
        "The judge's provider %(provider)s was not found.", provider=repr(slug)
    )


def lock_judged_runs(judged: Iterable[JudgedRun]) -> list[JudgedRun]:
    """Lock the runs, in the order that all writers use; leave out deleted ones."""
    asked = list(judged)
    if not asked:
        return []
    keys = {one.run for one in asked} | {one.baseline for one in asked} - {None}
    rows = Run.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=keys)
    found = set(rows.order_by("pk").values_list("pk", flat=True))
    return [
        one
        for one in asked
        if one.run in found and (one.baseline is None or one.baseline in found)
    ]


def store_judge_requests(judged: Sequence[JudgedRun]) -> None:
    """Replace the requests about locked runs, in the caller's transaction."""
    for one in judged:
        JudgeRequest.objects.filter(run=one.run, revision=one.revision).delete()
    JudgeRequest.objects.bulk_create(
        JudgeRequest(
            run_id=one.run,
            baseline_run_id=one.baseline,
            revision=one.revision,
            provider=each.provider[:MAX_NAME_CHARS],
            model=each.model[:MAX_NAME_CHARS],
            messages=[message.model_dump(mode="json") for message in each.messages],
            replies=[build_reply_row(reply) for reply in each.replies],
        )
        for one in judged
        for each in one.exchanges
    )


def build_reply_row(reply: JudgeReply) -> dict[str, Any]:
    """Return a reply as it is stored: its problem can be translated later."""
    return {
        **reply.model_dump(mode="json"),
        "problem": encode_stored_text(reply.problem),
    }


def list_judges_with_requests(run: Run, *, by: User) -> set[int]:
    """Return the revisions of judges whose requests about a run a user may read."""
    visible = Evaluator.objects.visible_to(by)
    rows = run.judge_requests.filter(revision__evaluator__in=visible)
    return set(rows.values_list("revision", flat=True))
