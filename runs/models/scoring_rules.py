"""Rules that score a sample of an agent's real runs, and what they found."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Agent
from runs.models.annotation import AnnotationQueue
from runs.models.evaluation import Dataset, Evaluator, EvaluatorRevision
from runs.models.runs import Run
from runs.models.webhooks import Webhook
from tools.ownership import filter_own_rows
from tools.text.translatable_field import TranslatableTextField


class ScoringRuleQuerySet(models.QuerySet["ScoringRule"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own rules, as with runs; all for superusers."""
        return filter_own_rows(self, user)


class ScoringRule(models.Model):
    """Which real runs of an agent are scored, by what, and what happens then.

    It scores runs that its owner sees.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(max_length=120)
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, related_name="scoring_rules"
    )
    evaluators = models.ManyToManyField(Evaluator, related_name="+")
    percent = models.DecimalField(max_digits=5, decimal_places=2, default=100)
    """Part of the runs that is scored."""
    daily_budget = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, blank=True
    )
    """Dollars that scores may cost in a day (UTC); null for any."""
    daily_runs = models.PositiveIntegerField(null=True, blank=True)
    """Runs that are scored in a day (UTC) at most; null for any number."""
    used_day = models.DateField(null=True)
    """The day (UTC) of `used_runs` and `used_cost`; a later one has used nothing."""
    used_runs = models.PositiveIntegerField(default=0, db_default=0)
    """Runs that were scored on that day, deleted ones included."""
    used_cost = models.DecimalField(
        max_digits=14, decimal_places=6, default=0, db_default=0
    )
    """Dollars that scores have cost on that day, those of deleted runs included."""
    webhook = models.ForeignKey(
        Webhook, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Is notified of runs that fail."""
    queue = models.ForeignKey(
        AnnotationQueue,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    dataset = models.ForeignKey(
        Dataset, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    is_on = models.BooleanField(default=True)
    problem = TranslatableTextField(blank=True)
    """Why a failing run could not be sent on; empty after one that could."""
    lease_until = models.DateTimeField(null=True)
    """How long a worker has it to itself."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ScoringRuleQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class ScoredRun(models.Model):
    """A run that a rule has selected; each run once for each rule."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DONE = "done", _("Scored")
        SKIPPED = "skipped", _("Over a limit of the day")
        UNSCORED = "unscored", _("No evaluator available")

    rule = models.ForeignKey(
        ScoringRule, on_delete=models.CASCADE, related_name="scored"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="scored")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    passed = models.BooleanField(null=True)
    """Whether all evaluators that decide were passed; null if none did."""
    value = models.FloatField(null=True)
    """The mean of the evaluators' values."""
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    """Of its scores."""
    scored_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "run"], name="scored_run_once")
        ]
        indexes = [
            models.Index(
                fields=["rule", "id"],
                condition=Q(state="waiting"),
                name="scored_run_waiting",
            ),
            models.Index(fields=["rule", "scored_at"], name="scored_run_by_day"),
        ]

    def __str__(self) -> str:
        return f"rule {self.rule_id}: run {self.run_id}"


class RunScore(models.Model):
    """What an evaluator says of a real run."""

    scored = models.ForeignKey(
        ScoredRun, on_delete=models.CASCADE, related_name="scores"
    )
    revision = models.ForeignKey(
        EvaluatorRevision, on_delete=models.CASCADE, related_name="+"
    )
    value = models.FloatField(null=True)
    label = models.CharField(max_length=200, blank=True)
    passed = models.BooleanField(null=True)
    explanation = TranslatableTextField(blank=True)
    problem = TranslatableTextField(blank=True)
    """Why there is no score; empty if there is one."""
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["scored", "revision"], name="run_score_once"
            )
        ]

    def __str__(self) -> str:
        return f"score {self.pk} of run"
