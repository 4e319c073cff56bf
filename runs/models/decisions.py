"""Approvals and other decisions that runs wait for, and allowances for whole runs."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.runs import Run
from runs.models.steps import AgentStep


class Allowance(models.Model):
    """An approval of every call of one tool in one run, until it is revoked."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="allowances")
    tool = models.CharField(max_length=200)
    """The name that the model calls."""
    reason = models.TextField(blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "tool"],
                condition=Q(revoked_at=None),
                name="allowance_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool} in run {self.run_id}"


class DecisionQuerySet(models.QuerySet["Decision"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the decisions of visible runs, and those `user` may approve."""
        if not user.is_authenticated:
            return self.none()
        if user.is_superuser:
            return self.all()
        # a join: PostgreSQL would read all runs of the user for `step__run__in`
        is_own = Q(step__run__owner=user)
        return self.filter(is_own | Q(approvers__in=user.groups.all()))

    def answerable_by(self, user: User | AnonymousUser) -> Self:
        """Return the decisions that `user` may make, made or not.

        Superusers may make all. If a tool names a group of approvers, its members may,
        and owning the run is not enough; otherwise the run's owner may. A tool that
        requires a second person takes the run's owner out.
        """
        if not user.is_authenticated:
            return self.none()
        others = self.exclude(second_person=True, step__run__owner=user)
        if user.is_superuser:
            return others
        return others.filter(
            Q(approvers=None, step__run__owner=user)
            | Q(approvers__in=user.groups.all())
        )

    def open(self) -> Self:
        """Return the decisions that nobody has made yet."""
        return self.filter(answer="")


class Decision(models.Model):
    """A question about one step, and a person's answer."""

    class Question(models.TextChoices):
        APPROVAL = "approval", _("Approve this call?")
        OUTCOME = "outcome", _("Did this call happen?")

    class Answer(models.TextChoices):
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        EXPIRED = "expired", _("Expired")
        WITHDRAWN = "withdrawn", _("Run ended first")
        HAPPENED = "happened", _("Happened")
        RETRY = "retry", _("Did not happen, retried")
        SKIP = "skip", _("Skipped")
        FAIL = "fail", _("Run failed")

    class AtExpiry(models.TextChoices):
        """What happens if nobody answers in time."""

        REJECT = "reject", _("Reject the call")
        STOP = "stop", _("Stop the run")

    step = models.ForeignKey(
        AgentStep, on_delete=models.CASCADE, related_name="decisions"
    )
    question = models.CharField(max_length=10, choices=Question)
    shown = models.JSONField()
    """The exact call that was shown: tool, input and target."""
    shown_digest = models.CharField(max_length=64)
    """SHA-256 of `shown`."""
    runs_digest = models.CharField(max_length=64, blank=True)
    """SHA-256 of the approved call; no other call may run."""
    approvers = models.ForeignKey(
        Group, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """The group whose members may answer; null for the run's owner."""
    second_person = models.BooleanField(default=False, db_default=False)
    """The run's owner may not answer."""
    asked_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    at_expiry = models.CharField(
        max_length=6, choices=AtExpiry, default=AtExpiry.REJECT
    )
    answer = models.CharField(max_length=10, choices=Answer, blank=True)
    edited_input = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    """Given to the model if a call is rejected; the result if the call happened."""
    allowance = models.ForeignKey(
        Allowance, null=True, on_delete=models.SET_NULL, related_name="decisions"
    )
    """The allowance for the whole run that answered it."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Who answered, or ended the run first."""
    at = models.DateTimeField(null=True)

    objects = DecisionQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["step"], condition=Q(answer=""), name="decision_open_once"
            )
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=Q(answer=""), name="decision_open"
            ),
            models.Index(fields=["-at"], name="decision_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.question} of step {self.step_id}"
