"""What runs ask people: questions, answers, and a yes that counts for a whole run."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import models
from django.db.models import Q

from runs.models.runs import Run
from runs.models.steps import AgentStep


class Allowance(models.Model):
    """A yes to every call of one tool in one run, until it is taken back."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="allowances")
    tool = models.CharField(max_length=200)
    """The name by which the run's model calls it."""
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
    """Questions by who may see and who may answer them."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return those of runs that `user` may see, and those put to `user`."""
        if not user.is_authenticated:
            return self.none()
        runs = Run.objects.visible_to(user)
        return self.filter(Q(step__run__in=runs) | Q(approvers__in=user.groups.all()))

    def answerable_by(self, user: User | AnonymousUser) -> Self:
        """Return those `user` may answer, answered or not.

        Superusers may answer all. Where a tool names a group, its members may, and
        whoever owns the run may not by that alone; else the run's owner may.
        """
        if not user.is_authenticated:
            return self.none()
        if user.is_superuser:
            return self
        return self.filter(
            Q(approvers=None, step__run__owner=user)
            | Q(approvers__in=user.groups.all())
        )

    def open(self) -> Self:
        """Return those nobody has answered."""
        return self.filter(answer="")


class Decision(models.Model):
    """A question to a person about one step, and the answer."""

    class Question(models.TextChoices):
        """What is asked."""

        APPROVAL = "approval", "May this call run?"
        OUTCOME = "outcome", "Did this call happen?"

    class Answer(models.TextChoices):
        """What a person, or the expiry, said."""

        APPROVED = "approved", "Approved"
        REJECTED = "rejected", "Rejected"
        EXPIRED = "expired", "Expired"
        WITHDRAWN = "withdrawn", "The run ended first"
        HAPPENED = "happened", "It happened"
        RETRY = "retry", "It did not happen: run it again"
        SKIP = "skip", "Skip it and tell the model"
        FAIL = "fail", "Fail the run"

    class AtExpiry(models.TextChoices):
        """What happens when nobody answers in time."""

        REJECT = "reject", "Reject the call and tell the model"
        STOP = "stop", "Stop the run"

    step = models.ForeignKey(
        AgentStep, on_delete=models.CASCADE, related_name="decisions"
    )
    question = models.CharField(max_length=10, choices=Question)
    shown = models.JSONField()
    """The exact call a person was shown: tool, input and target."""
    shown_digest = models.CharField(max_length=64)
    """SHA-256 of `shown`."""
    runs_digest = models.CharField(max_length=64, blank=True)
    """SHA-256 of the call that was approved; just this one may run."""
    approvers = models.ForeignKey(
        Group, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Whose members may answer; null for the run's owner."""
    asked_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    at_expiry = models.CharField(
        max_length=6, choices=AtExpiry, default=AtExpiry.REJECT
    )
    answer = models.CharField(max_length=10, choices=Answer, blank=True)
    edited_input = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    """Told to the model when a call is rejected; the result when it happened."""
    allowance = models.ForeignKey(
        Allowance, null=True, on_delete=models.SET_NULL, related_name="decisions"
    )
    """The yes for the whole run that answered it."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
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
