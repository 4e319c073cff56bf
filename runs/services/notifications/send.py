"""Send notifications by e-mail: claim, compose, send, record; at least once."""

import logging
import smtplib
import time
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import DatabaseError, InterfaceError
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import ApprovalLink, Notification
from runs.services.errors import RunsError
from runs.services.notifications.compose import MailText, compose_mail
from runs.store.database_clock import db_time_from_now
from runs.store.mail.notifications import MAX_PER_HOUR, count_recent_notifications

logger = logging.getLogger(__name__)

BATCH_SIZE = 20
LEASE_SECONDS = 600.0
"""More than one message takes, even if the mail server is slow at each command."""
RETRY_DELAYS = (30.0, 120.0, 600.0, 3_600.0, 21_600.0)
"""Seconds between attempts; after the last one the message is given up."""
MAX_ERROR_CHARS = 300
MAX_AGE = timedelta(days=30)
IDLE_PAUSE_SECONDS = 3_600.0

Status = Notification.Status


class TooManyTests(RunsError):
    """The user has requested as many test messages as are sent in an hour."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "Too many test messages within an hour. Nothing was sent. "
                "Try again later."
            )
        )


def request_test_mail(user: User) -> None:
    """Let a worker send a test message to the user; raise `TooManyTests`."""
    now = timezone.now()
    if count_recent_notifications(user, Notification.Kind.TEST) >= MAX_PER_HOUR:
        raise TooManyTests
    Notification.objects.create(
        user=user,
        kind=Notification.Kind.TEST,
        key=f"test:{now:%Y%m%d%H%M%S%f}",
        available_at=now,
        created_at=now,
    )


def send_due_notifications() -> int:
    """Send some messages that are due; return how many were claimed.

    Each is claimed just before it is sent, so that a slow mail server lets no lease
    end while a message waits behind others.
    """
    for count in range(BATCH_SIZE):
        notification = claim_due_notification()
        if notification is None:
            return count
        _send_notification(notification)
    return BATCH_SIZE


def claim_due_notification() -> Notification | None:
    """Claim the message that is due first; another process does not get it."""
    due = Notification.objects.filter(status=Status.WAITING, available_at__lte=Now())
    keys = due.order_by("available_at").values_list("pk", flat=True)[:BATCH_SIZE]
    for pk in list(keys):
        until = db_time_from_now(LEASE_SECONDS)
        if due.filter(pk=pk).update(available_at=until, attempts=F("attempts") + 1):
            related = ("user", "run__agent", "run__owner", "run__spec", "schedule")
            rows = Notification.objects.select_related(
                *related, "decision__step__run__agent"
            )
            return rows.filter(pk=pk).first()
    return None


def _send_notification(notification: Notification) -> None:
    user = notification.user
    if not user.is_active or not user.email:
        _end(notification, Status.DROPPED)
        return
    try:
        text = compose_mail(notification)
        if text is None:
            _end(notification, Status.DROPPED)
            return
        send_mail(notification, text)
    except (smtplib.SMTPRecipientsRefused, ValueError) as error:
        _end(notification, Status.FAILED, error=describe_mail_error(error))
    except (smtplib.SMTPException, OSError) as error:
        _retry(notification, describe_mail_error(error))
    except (DatabaseError, InterfaceError):
        raise  # the lease ends, and another attempt follows
    except Exception as error:  # one message must not hold up the others
        logger.exception("e-mail %s could not be sent", notification.pk)
        _retry(notification, f"Internal error ({type(error).__name__}), see the log.")
    else:
        _end(notification, Status.SENT)


def send_mail(notification: Notification, text: MailText) -> None:
    """Send one message; its id stays the same when it is sent again."""
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    EmailMessage(
        text.subject,
        text.body,
        to=[notification.user.email],
        headers={
            "Message-ID": f"<agentsite.{notification.pk}.{notification.key}@{host}>",
            "Auto-Submitted": "auto-generated",
        },
    ).send()


def describe_mail_error(error: Exception) -> str:
    """Return what the mail server said, as one line without our password."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        parts = [reply for _code, reply in error.recipients.values()]
        said = "; ".join(_decode(one) for one in parts)
        return f"The mail server refused the address: {said}"[:MAX_ERROR_CHARS]
    if isinstance(error, smtplib.SMTPResponseException):
        said = _decode(error.smtp_error)
        code = error.smtp_code
        return f"The mail server responded with {code}: {said}"[:MAX_ERROR_CHARS]
    return f"The mail server could not be reached: {error}"[:MAX_ERROR_CHARS]


def _decode(text: bytes | str) -> str:
    found = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join(found.split())


def _retry(notification: Notification, error: str) -> None:
    """Try again later; give up after the last attempt."""
    if notification.attempts > len(RETRY_DELAYS):
        _end(notification, Status.FAILED, error=error)
        return
    logger.warning("e-mail %s was not sent: %s", notification.pk, error)
    delay = RETRY_DELAYS[notification.attempts - 1]
    _get_claimed(notification).update(available_at=db_time_from_now(delay), error=error)


def _end(notification: Notification, status: str, *, error: str = "") -> None:
    _get_claimed(notification).update(
        status=status, available_at=None, error=error, ended_at=Now()
    )


def _get_claimed(notification: Notification) -> "QuerySet[Notification]":
    """Return the row, unless another worker has claimed it since."""
    return Notification.objects.filter(
        pk=notification.pk, attempts=notification.attempts, status=Status.WAITING
    )


@dataclass
class NotificationPruner:
    """When a worker deletes old rows next."""

    due: float = 0.0

    def prune_if_due(self) -> None:
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + IDLE_PAUSE_SECONDS
        old = timezone.now() - MAX_AGE
        ended = Notification.objects.filter(created_at__lt=old, available_at=None)
        ended.delete()
        ApprovalLink.objects.filter(expires_at__lt=old).delete()
