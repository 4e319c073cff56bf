"""One-time links by which one person answers one approval without signing in.

A link shows the exact call, and answers when its form is sent: opening it changes
nothing, so that link previews do no harm. It is bound to a person, whose right to
answer is checked when it is opened and again when it is used.
"""

import json
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from runs.models import ApprovalLink, Decision
from runs.services.accounts.tokens import hash_token
from runs.services.approvals.answer import approve_step, reject_step
from runs.services.errors import NotAllowed
from tools.audit.actor import Way, act_as

LIFETIME = timedelta(hours=24)
MAX_SHOWN_CHARACTERS = 100_000
"""Characters of arguments that a page shows; the download has all of them."""


class LinkNotValid(NotAllowed):
    """The link is used, expired or unknown, or its decision is made."""

    def __init__(self) -> None:
        super().__init__(_("The link is no longer valid. Nothing was saved."))


class ShownInPart(NotAllowed):
    """The page of the link cannot show all of the arguments."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "The arguments are too long to be approved by a link. "
                "Nothing was saved. Sign in to see all of them."
            )
        )


def is_shown_in_full(decision: Decision) -> bool:
    shown = decision.shown.get("tool_input")
    return len(format_linked_arguments(shown)) <= MAX_SHOWN_CHARACTERS


def format_linked_arguments(shown: Any) -> str:
    if isinstance(shown, str):
        return shown
    return json.dumps(shown, ensure_ascii=False, indent=2)


def create_approval_link(decision: Decision, user: User) -> str:
    """Return the token of a new link; it ends with the decision, at most in a day."""
    token = secrets.token_urlsafe(32)
    ApprovalLink.objects.create(
        user=user,
        decision=decision,
        digest=hash_token(token),
        expires_at=Now() + LIFETIME,
    )
    return token


def build_approval_link_url(token: str) -> str:
    return f"{settings.PUBLIC_URL}/approve/{token}/"


def find_approval_link(token: str) -> ApprovalLink | None:
    """Return the link if its person may still answer with it."""
    found = (
        ApprovalLink.objects.filter(
            Q(decision__expires_at=None) | Q(decision__expires_at__gt=Now()),
            digest=hash_token(token),
            used_at=None,
            expires_at__gt=Now(),
            user__is_active=True,
            decision__answer="",
            decision__question=Decision.Question.APPROVAL,
        )
        .select_related("user")
        .first()
    )
    if found is None:
        return None
    may = Decision.objects.answerable_by(found.user).filter(pk=found.decision_id)
    return found if may.exists() else None


def answer_by_link(
    token: str, *, approve: bool, shown: str, reason: str = ""
) -> ApprovalLink:
    """Answer once, as the person of the link; return it.

    Raises `LinkNotValid`, or what `approve_step` raises; the link is then unused.
    """
    with transaction.atomic():
        link = find_approval_link(token)
        if link is None or not _use_link(link):
            raise LinkNotValid
        rows = Decision.objects.select_related("step__run__spec", "step__run__agent")
        decision = rows.get(pk=link.decision_id)
        if approve and not is_shown_in_full(decision):
            raise ShownInPart
        answer = approve_step if approve else reject_step
        with act_as(link.user, way=Way.LINK):
            answer(decision, by=link.user, reason=reason, shown=shown)
    return link


def _use_link(link: ApprovalLink) -> bool:
    """Mark the link as used; False if another request was first."""
    rows = ApprovalLink.objects.filter(pk=link.pk, used_at=None)
    return bool(rows.update(used_at=Now()))
