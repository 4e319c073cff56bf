"""Experiments: a version of a dataset, run by candidates and scored by evaluators."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.agents import Agent, AgentVersion, Spec
from runs.models.evaluation import Dataset, EvaluatorRevision, Example
from runs.models.runs import Run
from tools.ownership import filter_own_rows
from tools.text.translatable_field import TranslatableTextField


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the user's own experiments, as with runs; all for superusers."""
        return filter_own_rows(self, user)


class Experiment(models.Model):
    """Every example of a dataset version, run by every candidate."""

    class Status(models.TextChoices):
        RUNNING = "running", _("Running")
        STOPPED = "stopped", _("Stopped")
        DONE = "done", _("Done")

    class ToolMode(models.TextChoices):
        """How tool calls of its runs are answered."""

        HOLD_BACK = "hold_back", _("Hold back: only calls that read are made")
        REPLAY_BY_TOOL = "replay_by_tool", _("Replay by tool")
        REPLAY_READS = (
            "replay_reads",
            _("Replay by tool; without a recording, calls that read are made"),
        )
        REPLAY_STRICT = "replay_strict", _("Replay, strict")
        LIVE = "live", _("Live: all calls are made")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    name = models.CharField(max_length=120)
    dataset = models.ForeignKey(
        Dataset, on_delete=models.PROTECT, related_name="experiments"
    )
    dataset_version = models.PositiveIntegerField()
    evaluators = models.ManyToManyField(EvaluatorRevision, related_name="+")
    """As they were when it was created."""
    tool_mode = models.CharField(
        max_length=16, choices=ToolMode, default=ToolMode.HOLD_BACK
    )
    repetitions = models.PositiveSmallIntegerField(default=1)
    concurrency = models.PositiveSmallIntegerField(default=10)
    """Most unfinished runs at once."""
    budget = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    """Dollars; it stops when its runs and scores have cost as much."""
    seed = models.PositiveIntegerField(default=1)
    """Of the order of its runs and of the statistics."""
    status = models.CharField(
        max_length=8, choices=Status, default=Status.RUNNING, db_index=True
    )
    problem = TranslatableTextField(blank=True)
    """Why it was stopped, unless a person did it."""
    total = models.PositiveIntegerField(default=0)
    """Runs when it is done."""
    created_runs = models.PositiveIntegerField(default=0)
    """Of its `ExperimentRun` rows."""
    figures = models.JSONField(default=dict)
    """`runs.services.experiments.figures.ExperimentFigures`, written by workers."""
    needs_figures = models.BooleanField(default=False, db_default=False)
    """Whether a worker must write them once more, when no run is being scored."""
    lease_until = models.DateTimeField(null=True)
    """How long the process that advances it has it to itself."""
    lease_holder = models.UUIDField(null=True)
    """That process."""
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_bisection(self) -> bool:
        """Whether it searches for a failing version; `Bisection` says for which."""
        return hasattr(self, "bisection")

    @property
    def is_running(self) -> bool:
        return self.status == "running"


class ExperimentCandidate(models.Model):
    """What an experiment compares; the first one is the baseline."""

    experiment = models.ForeignKey(
        Experiment, on_delete=models.CASCADE, related_name="candidates"
    )
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=200)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    version = models.ForeignKey(
        AgentVersion, null=True, on_delete=models.PROTECT, related_name="+"
    )
    """Null for the draft, as it was when the experiment was created."""
    changes = models.JSONField(default=dict)
    """`runs.services.experiments.changes.CandidateChanges`, without defaults."""
    spec = models.ForeignKey(Spec, on_delete=models.PROTECT, related_name="+")
    called_specs = models.JSONField(default=dict, db_default={})
    """Digests of the specs of the agents that it calls, by the key of the agent."""

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "position"], name="experiment_candidate_once"
            )
        ]

    def __str__(self) -> str:
        return self.label


class Bisection(models.Model):
    """The search for the version at which an example began to fail.

    Its experiment runs one example; the first candidate is the one that failed, and
    each further one is a version that the search needed.
    """

    experiment = models.OneToOneField(
        Experiment, on_delete=models.CASCADE, related_name="bisection"
    )
    source = models.ForeignKey(
        Experiment, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """Where the example failed."""
    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="+")
    versions = models.JSONField()
    """Numbers of the versions before the failing candidate, the oldest first."""

    def __str__(self) -> str:
        return f"bisection {self.pk}"


class ExperimentRun(models.Model):
    """One example, run by one candidate; the run itself is an ordinary one."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        STARTED = "started", _("Running")
        DONE = "done", _("Done")
        REFUSED = "refused", _("Not started")

    experiment = models.ForeignKey(
        Experiment, on_delete=models.CASCADE, related_name="cells"
    )
    example = models.ForeignKey(Example, on_delete=models.CASCADE, related_name="+")
    candidate = models.ForeignKey(
        ExperimentCandidate, on_delete=models.CASCADE, related_name="cells"
    )
    repetition = models.PositiveSmallIntegerField(default=0)
    place = models.PositiveIntegerField()
    """In the order in which the runs are started."""
    run = models.OneToOneField(
        Run, null=True, on_delete=models.SET_NULL, related_name="experiment_run"
    )
    """Null before it is started, and after it was deleted."""
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    problem = TranslatableTextField(blank=True)
    """Why no run could be started."""
    run_status = models.CharField(max_length=20, blank=True)
    passed = models.BooleanField(null=True)
    """Whether it passes all evaluators; null if none decides, or one gave no score."""
    score = models.FloatField(null=True)
    """The mean of the evaluators' values; null if one gave no score."""
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    """Of the run and of its scores, discarded ones too."""
    judge_cost = models.DecimalField(
        max_digits=14, decimal_places=6, default=0, db_default=0
    )
    """The part of `cost` that is of scores."""
    tokens = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "example", "candidate", "repetition"],
                name="experiment_run_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["experiment", "place"],
                condition=Q(state="waiting"),
                name="experiment_run_waiting",
            ),
            models.Index(
                fields=["experiment"],
                condition=Q(state="started"),
                name="experiment_run_started",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.example_id}, {self.candidate_id}"


class Score(models.Model):
    """What an evaluator says of a run of an experiment."""

    class Source(models.TextChoices):
        EVALUATOR = "evaluator", _("evaluator")

    cell = models.ForeignKey(
        ExperimentRun, on_delete=models.CASCADE, related_name="scores"
    )
    revision = models.ForeignKey(
        EvaluatorRevision, on_delete=models.CASCADE, related_name="+"
    )
    source = models.CharField(max_length=10, choices=Source, default=Source.EVALUATOR)
    value = models.FloatField(null=True)
    label = models.CharField(max_length=200, blank=True)
    passed = models.BooleanField(null=True)
    explanation = TranslatableTextField(blank=True)
    problem = TranslatableTextField(blank=True)
    """Why there is no score; empty if there is one."""
    applies = models.BooleanField(default=True, db_default=True)
    """False if the example has nothing to compare with."""
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cell", "revision", "source"], name="score_once"
            )
        ]

    def __str__(self) -> str:
        return f"score {self.pk}"
