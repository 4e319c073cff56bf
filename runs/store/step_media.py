"""Images and sounds of steps."""

from collections.abc import Iterable, Sequence

from runs.models import AgentStep, StepMedia
from runs.store.claims import ClaimedRun
from runs.store.commits import increment_seq
from tools.media import Media


def store_step_media(
    claim: ClaimedRun, step: AgentStep, media: Sequence[Media]
) -> None:
    """Store what a call returned, before its outcome; in a worker's transaction.

    What an earlier attempt stored is replaced.
    """
    increment_seq(claim)
    StepMedia.objects.filter(step=step).delete()
    StepMedia.objects.bulk_create(
        StepMedia(
            step=step, position=number, media_type=one.media_type, content=one.content
        )
        for number, one in enumerate(media, 1)
    )


def copy_step_media(copies: Iterable[AgentStep]) -> None:
    """Give steps that a fork copied what their originals have."""
    by_original = {step.copied_from_id: step for step in copies if not step.is_edited}
    StepMedia.objects.bulk_create(
        StepMedia(
            step=by_original[one.step_id],
            position=one.position,
            media_type=one.media_type,
            content=one.content,
        )
        for one in StepMedia.objects.filter(step__in=by_original).iterator(8)
    )
