"""Datasets of examples for evaluating agents, and the evaluators that score runs."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from runs.models.runs import Run
from tools.ownership import Owned, OwnedQuerySet


class Dataset(Owned):
    """A set of examples; `version` is the newest saved one, 0 before the first."""

    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=0)
    input_names = models.JSONField(default=list)
    """The variables of its examples, in the order of the columns."""
    next_number = models.PositiveIntegerField(default=1)
    """The number of the next example."""

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    """A saved version, and how it differs from the one before."""

    dataset = models.ForeignKey(
        Dataset, on_delete=models.CASCADE, related_name="versions"
    )
    number = models.PositiveIntegerField()
    example_count = models.PositiveIntegerField()
    added = models.PositiveIntegerField(default=0)
    edited = models.PositiveIntegerField(default=0)
    removed = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["dataset", "number"], name="dataset_version_once"
            )
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class ExampleQuerySet(models.QuerySet["Example"]):
    def in_version(self, number: int) -> "ExampleQuerySet":
        ended = Q(until_version=None) | Q(until_version__gt=number)
        return self.filter(ended, from_version__lte=number)

    def unsaved(self) -> "ExampleQuerySet":
        """Return the changes that belong to no version yet."""
        return self.filter(from_version=None)


class Example(models.Model):
    """Inputs and what is expected, as they are in a range of versions.

    Saved rows never change: an edit is an unsaved row with the same number, and saving
    a version ends the old row and begins the new one.
    """

    class Change(models.TextChoices):
        """What an unsaved row does; saved rows have none."""

        ADDED = "added", _("Added")
        EDITED = "edited", _("Edited")
        REMOVED = "removed", _("Removed")

    class Source(models.TextChoices):
        TYPED = "typed", _("typed")
        IMPORT = "import", _("import")
        RUN = "run", _("run")
        CONVERSATION = "chat", _("run of a conversation")
        """Of a deleted run that was given earlier messages."""

    dataset = models.ForeignKey(
        Dataset, on_delete=models.CASCADE, related_name="examples"
    )
    number = models.PositiveIntegerField()
    """The same in all versions."""
    from_version = models.PositiveIntegerField(null=True)
    """Null while unsaved."""
    until_version = models.PositiveIntegerField(null=True)
    """The first version without it; null in the newest version and while unsaved."""
    change = models.CharField(max_length=8, choices=Change, blank=True)
    inputs = models.JSONField(default=dict)
    """Text by variable, as the inputs of a run."""
    input_digest = models.CharField(max_length=64)
    """Of `inputs`, to find duplicates."""
    expected_answer = models.TextField(blank=True)
    expected_calls = models.JSONField(default=list)
    """`[{"tool": …, "tool_input": … or null}]`; null stands for any arguments."""
    tags = models.JSONField(default=list)
    search_text = models.TextField(blank=True)
    """All texts in lower case."""
    source = models.CharField(max_length=8, choices=Source, default=Source.TYPED)
    source_run = models.ForeignKey(
        Run, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    objects = ExampleQuerySet.as_manager()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["dataset", "number"],
                condition=Q(from_version=None),
                name="example_unsaved_once",
            ),
            models.UniqueConstraint(
                fields=["dataset", "number"],
                condition=Q(from_version__isnull=False, until_version=None),
                name="example_current_once",
            ),
            models.CheckConstraint(
                name="example_unsaved_has_a_change",
                condition=Q(from_version=None, until_version=None) & ~Q(change="")
                | Q(from_version__isnull=False, change=""),
            ),
            models.CheckConstraint(
                name="example_ends_after_it_begins",
                condition=Q(until_version=None)
                | Q(until_version__gt=F("from_version")),
            ),
        ]
        indexes = [
            models.Index(fields=["dataset", "input_digest"], name="example_by_inputs"),
        ]

    def __str__(self) -> str:
        return f"example {self.number}"


class DatasetUpload(models.Model):
    """A file that one person is importing, until it is imported or canceled."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    file_name = models.CharField(max_length=255)
    file_format = models.CharField(max_length=20)
    body = models.BinaryField()
    """Columns and rows as compressed JSON; see `runs.services.datasets.uploads`."""
    mapping = models.JSONField(default=dict)
    """What each column is, and what to do with duplicates."""
    uploaded_at = models.DateTimeField(auto_now=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dataset", "owner"], name="dataset_upload_once"
            )
        ]

    def __str__(self) -> str:
        return self.file_name


class Evaluator(Owned):
    """What turns a run into a score: a kind and its settings."""

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=30)
    """A key of `runs.evaluation.registry.EVALUATOR_KINDS`."""
    config = models.JSONField(default=dict)
    """Fields of the kind's `config_model`."""
    revision = models.PositiveIntegerField(default=0)
    """The newest `EvaluatorRevision`, which has this kind and these settings."""

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class EvaluatorRevision(models.Model):
    """An evaluator as it was at a time; scores refer to it."""

    evaluator = models.ForeignKey(
        Evaluator, on_delete=models.CASCADE, related_name="revisions"
    )
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=30)
    config = models.JSONField(default=dict)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["evaluator", "number"], name="evaluator_revision_once"
            )
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"


class JudgeRequest(models.Model):
    """What a judge asked a model about a run, and what the model replied.

    Of the latest scoring of the run by that revision; it is deleted with the run, and
    with the run that it was compared with.
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="judge_requests"
    )
    baseline_run = models.ForeignKey(
        Run, null=True, on_delete=models.CASCADE, related_name="+"
    )
    revision = models.ForeignKey(
        EvaluatorRevision, on_delete=models.CASCADE, related_name="+"
    )
    provider = models.CharField(max_length=200)
    """Slug."""
    model = models.CharField(max_length=200)
    messages = models.JSONField()
    """A list of `runs.evaluation.types.JudgeMessage`."""
    replies = models.JSONField()
    """A list of `runs.evaluation.types.JudgeReply`, one for each vote."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.revision_id}: run {self.run_id}"
