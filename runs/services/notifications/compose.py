"""The texts of notifications, in the language of their reader.

A mail says what needs attention and where; arguments and answers stay on the site.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import translation
from django.utils.translation import gettext as _

from runs.models import Decision, Notification, Preferences
from runs.services.approvals.by_link import (
    build_approval_link_url,
    create_approval_link,
)
from runs.services.runs.mask_secrets import SecretMask

MAX_ERROR_CHARS = 500
MAX_SUBJECT_CHARS = 150


class MailText(NamedTuple):
    subject: str
    body: str


def compose_mail(notification: Notification) -> MailText | None:
    """Return the text, or None if nothing is left to say.

    For an approval this creates its link, so it belongs just before the sending.
    """
    user = notification.user
    chosen = Preferences.objects.filter(user=user).values_list("language", flat=True)
    language = chosen.first() or settings.LANGUAGE_CODE
    with translation.override(language):
        found = _compose(notification, user)
        if found is None:
            return None
        subject = " ".join(found.subject.split())[:MAX_SUBJECT_CHARS]
        return MailText(subject, f"{found.body}\n\n-- \n{_describe_origin()}\n")


def _describe_origin() -> str:
    return _("Sent by Agentsite at %(host)s. Change what is sent to you at %(url)s") % {
        "host": urlsplit(settings.PUBLIC_URL).netloc,
        "url": f"{settings.PUBLIC_URL}/account/notifications/",
    }


def _compose(notification: Notification, user: User) -> MailText | None:
    match notification.kind:
        case Notification.Kind.DECISION:
            return _compose_decision(notification, user)
        case Notification.Kind.RUN_FAILED:
            return _compose_failed_run(notification)
        case Notification.Kind.SCHEDULE:
            return _compose_schedule(notification)
    return MailText(
        _("Test message from Agentsite"),
        _("E-mail notifications work. You asked for this test."),
    )


def _compose_decision(notification: Notification, user: User) -> MailText | None:
    decision = notification.decision
    if decision is None or decision.answer:
        return None
    if not Decision.objects.answerable_by(user).filter(pk=decision.pk).exists():
        return None
    names = {
        "agent": decision.step.run.agent.name,
        "tool": decision.step.tool,
        "run": decision.step.run_id,
    }
    page = f"{settings.PUBLIC_URL}/approvals/{decision.pk}/"
    if decision.question == Decision.Question.OUTCOME:
        return MailText(
            _("%(agent)s: decide what happened to a call of %(tool)s") % names,
            _(
                "A worker stopped while run %(run)d called %(tool)s. It is not known "
                "whether the call happened."
            )
            % names
            + "\n\n"
            + _("Decide after you sign in:")
            + f"\n{page}",
        )
    link = build_approval_link_url(create_approval_link(decision, user))
    return MailText(
        _("%(agent)s needs approval to call %(tool)s") % names,
        "\n\n".join(
            [
                _("Run %(run)d of %(agent)s waits for approval to call %(tool)s.")
                % names,
                _("See the exact arguments and answer, once, within 24 hours:")
                + f"\n{link}",
                _("The link is for you alone. Do not forward this message."),
                _("Or sign in:") + f"\n{page}",
            ]
        ),
    )


def _compose_failed_run(notification: Notification) -> MailText | None:
    run = notification.run
    if run is None or run.status != "failed":
        return None  # it was resumed
    error = SecretMask(run).text(run.error_message)[:MAX_ERROR_CHARS]
    return MailText(
        _("%(agent)s: run %(run)d failed") % {"agent": run.agent.name, "run": run.pk},
        f"{error}\n\n{settings.PUBLIC_URL}/runs/{run.pk}/".strip(),
    )


def _compose_schedule(notification: Notification) -> MailText | None:
    schedule = notification.schedule
    if schedule is None or not schedule.problem:
        return None
    return MailText(
        _("Schedule %(name)s could not start a run") % {"name": schedule.name},
        f"{schedule.problem}\n\n{settings.PUBLIC_URL}/schedules/{schedule.pk}/",
    )
