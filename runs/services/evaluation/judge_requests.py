"""Keep what judges asked models, and the replies, beside the runs that they scored."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from runs.evaluation.types import ScoreResult
from runs.models import Evaluator, EvaluatorRevision, JudgeRequest, Run

Scored = tuple[Run, EvaluatorRevision, ScoreResult]
MAX_NAME_CHARS = 200


def store_judge_requests(scored: Iterable[Scored]) -> None:
    """Replace what is kept of these runs and judges, in the caller's transaction."""
    asked = [one for one in scored if one[2].exchanges]
    for run, revision, _ in asked:
        JudgeRequest.objects.filter(run=run, revision=revision).delete()
    JudgeRequest.objects.bulk_create(
        JudgeRequest(
            run=run,
            revision=revision,
            provider=each.provider[:MAX_NAME_CHARS],
            model=each.model[:MAX_NAME_CHARS],
            messages=[one.model_dump(mode="json") for one in each.messages],
            replies=[one.model_dump(mode="json") for one in each.replies],
        )
        for run, revision, result in asked
        for each in result.exchanges
    )


def list_judges_with_requests(run: Run, *, by: User) -> set[int]:
    """Return the revisions of judges whose requests about a run a user may read."""
    visible = Evaluator.objects.visible_to(by)
    rows = run.judge_requests.filter(revision__evaluator__in=visible)
    return set(rows.values_list("revision", flat=True))
