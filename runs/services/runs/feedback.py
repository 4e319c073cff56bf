"""What people think of a run: a rating, tags, comments."""

from datetime import datetime

from django.contrib.auth.models import User
from django.core import signing
from django.utils.translation import gettext as _

from runs.models import Run, RunComment, RunTag
from runs.services.errors import RunsError

MAX_TAG_CHARACTERS = 40
MAX_COMMENT_CHARACTERS = 4_000
MAX_TAGS = 20
MAX_UNDO_SECONDS = 3600


class FeedbackRefused(RunsError):
    """What was entered cannot be stored."""


def rate_run(run: Run, rating: int | None) -> None:
    """Rate a run with 1 or -1; the rating that it has, or None, removes it."""
    run.rating = None if rating == run.rating else rating
    Run.objects.filter(pk=run.pk).update(rating=run.rating)


def add_tag(run: Run, name: str) -> None:
    """Add a tag; one that the run has already changes nothing."""
    name = " ".join(name.replace("\0", "").split())
    if not name or len(name) > MAX_TAG_CHARACTERS:
        raise FeedbackRefused(_("Enter a tag of 1 to 40 characters."))
    if RunTag.objects.filter(run=run).exclude(name=name).count() >= MAX_TAGS:
        raise FeedbackRefused(_("A run has at most 20 tags. Remove one first."))
    RunTag.objects.get_or_create(run=run, name=name)


def remove_tag(run: Run, name: str) -> None:
    RunTag.objects.filter(run=run, name=name).delete()


def add_comment(run: Run, text: str, *, by: User) -> RunComment:
    text = text.replace("\0", "").replace("\r\n", "\n").strip()
    if not text:
        raise FeedbackRefused(_("Enter a comment."))
    if len(text) > MAX_COMMENT_CHARACTERS:
        raise FeedbackRefused(_("Enter a comment of at most 4,000 characters."))
    return RunComment.objects.create(run=run, author=by, text=text)


def delete_comment(comment: RunComment, *, by: User) -> None:
    """Delete a comment of one's own; administrators may delete any."""
    if comment.author_id != by.pk and not by.is_superuser:
        raise FeedbackRefused(_("Only the author can delete a comment."))
    comment.delete()


def dump_comment(comment: RunComment) -> str:
    """Return a deleted comment, signed, with which it can be restored."""
    values = [comment.text, comment.author_id, comment.created_at.isoformat()]
    return signing.dumps(values, salt=f"comment-{comment.run_id}")


def restore_comment(run: Run, dumped: str) -> None:
    """Restore a deleted comment with its author and time, unless it is there."""
    try:
        text, author, at = signing.loads(
            dumped, salt=f"comment-{run.pk}", max_age=MAX_UNDO_SECONDS
        )
    except signing.BadSignature:
        raise FeedbackRefused(_("The comment can no longer be restored.")) from None
    author = User.objects.filter(pk=author).first()
    created_at = datetime.fromisoformat(at)
    if run.comments.filter(author=author, created_at=created_at).exists():
        return
    comment = RunComment.objects.create(run=run, author=author, text=text)
    RunComment.objects.filter(pk=comment.pk).update(created_at=created_at)
