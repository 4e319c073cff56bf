"""Runs by the quarter of an hour in which they started, for the figures of the home.

Every time zone is a whole number of quarters away from UTC, so days and hours of any
zone consist of whole slots. The rows outlive the runs.
"""

from django.db import models

EVERYONE = 0
"""The `owner_number` of the rows that count the runs of all people."""


class RunStatsSlot(models.Model):
    """How many runs that started in a slot have ended, by owner, agent and model."""

    owner_number = models.BigIntegerField()
    """Key of a user, or `EVERYONE`."""
    slot = models.DateTimeField()
    agent_number = models.BigIntegerField()
    """Key of an agent, which may be deleted."""
    model = models.CharField(max_length=200)
    """The name of the model in the spec."""
    is_child = models.BooleanField()
    """Whether other runs started them."""
    is_test = models.BooleanField(default=False, db_default=False)
    """Whether they are test runs, or runs of experiments and gates."""
    succeeded = models.IntegerField(default=0, db_default=0)
    limit_reached = models.IntegerField(default=0, db_default=0)
    failed = models.IntegerField(default=0, db_default=0)
    canceled = models.IntegerField(default=0, db_default=0)
    tokens = models.BigIntegerField(default=0, db_default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("owner_number", "slot", "agent_number", "model"),
                    *("is_child", "is_test"),
                ],
                name="run_stats_slot_once",
            )
        ]

    def __str__(self) -> str:
        return f"runs of {self.owner_number} at {self.slot:%Y-%m-%d %H:%M}"


class RunSumsSlot(models.Model):
    """The rows of `RunStatsSlot` without agent and model: a few for each slot."""

    owner_number = models.BigIntegerField()
    slot = models.DateTimeField()
    is_child = models.BooleanField()
    is_test = models.BooleanField()
    succeeded = models.IntegerField(default=0, db_default=0)
    limit_reached = models.IntegerField(default=0, db_default=0)
    failed = models.IntegerField(default=0, db_default=0)
    canceled = models.IntegerField(default=0, db_default=0)
    tokens = models.BigIntegerField(default=0, db_default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner_number", "slot", "is_child", "is_test"],
                name="run_sums_slot_once",
            )
        ]

    def __str__(self) -> str:
        return f"sums of {self.owner_number} at {self.slot:%Y-%m-%d %H:%M}"


class RunStatsDay(models.Model):
    """The rows of `RunStatsSlot` by day, in UTC: a hundred times fewer."""

    owner_number = models.BigIntegerField()
    day = models.DateField()
    agent_number = models.BigIntegerField()
    model = models.CharField(max_length=200)
    is_child = models.BooleanField()
    is_test = models.BooleanField()
    succeeded = models.IntegerField(default=0, db_default=0)
    limit_reached = models.IntegerField(default=0, db_default=0)
    failed = models.IntegerField(default=0, db_default=0)
    canceled = models.IntegerField(default=0, db_default=0)
    tokens = models.BigIntegerField(default=0, db_default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("owner_number", "day", "agent_number", "model"),
                    *("is_child", "is_test"),
                ],
                name="run_stats_day_once",
            )
        ]

    def __str__(self) -> str:
        return f"runs of {self.owner_number} on {self.day}"


class RunDurationSlot(models.Model):
    """How many runs of a slot took how long, without runs that other runs started."""

    owner_number = models.BigIntegerField()
    """Key of a user, or `EVERYONE`."""
    slot = models.DateTimeField()
    bucket = models.SmallIntegerField()
    """See `runs.services.search.duration_buckets`."""
    is_test = models.BooleanField(default=False, db_default=False)
    runs = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner_number", "slot", "bucket", "is_test"],
                name="run_duration_slot_once",
            )
        ]

    def __str__(self) -> str:
        return f"durations of {self.owner_number} at {self.slot:%Y-%m-%d %H:%M}"
