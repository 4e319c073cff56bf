"""Gates: what a draft must pass before it is published, and replays of real inputs."""

from django.conf import settings
from django.db import models

from runs.models.agents import Agent
from runs.models.evaluation import Dataset, Evaluator
from runs.models.experiments import Experiment
from runs.models.runs import Run


class Gate(models.Model):
    """The experiment that an agent requires; its draft is compared with its version."""

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, related_name="gate")
    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="+")
    """Its newest version counts."""
    evaluators = models.ManyToManyField(Evaluator, related_name="+")
    tool_mode = models.CharField(
        max_length=16,
        choices=Experiment.ToolMode,
        default=Experiment.ToolMode.HOLD_BACK,
    )
    repetitions = models.PositiveSmallIntegerField(default=1)
    rules = models.JSONField(default=dict)
    """Fields of `runs.evaluation.gate.GateRules`."""
    imported_digest = models.CharField(max_length=64, blank=True)
    """Of the draft's spec for which an agent file has brought `imported_result`."""
    imported_result = models.JSONField(null=True)
    """A `runs.evaluation.gate.GateResult`."""

    def __str__(self) -> str:
        return f"gate of {self.agent}"


class InputReplay(models.Model):
    """Inputs of real runs, run again by a draft with recorded results."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    digest = models.CharField(max_length=64)
    """Of the draft's spec."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["agent", "digest"], name="input_replay_by_draft")
        ]

    def __str__(self) -> str:
        return f"replay {self.pk}"


class ReplayedInput(models.Model):
    """A real run, and the run of the draft that replays it."""

    replay = models.ForeignKey(
        InputReplay, on_delete=models.CASCADE, related_name="inputs"
    )
    recorded = models.ForeignKey(
        Run, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    run = models.OneToOneField(
        Run, null=True, on_delete=models.SET_NULL, related_name="replayed_input"
    )

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.replay_id}: {self.recorded_id}"
