"""Count the durations of runs that are indexed already.

Nothing is locked: the runs are read in windows, and the counts are new rows.
"""

from collections import Counter
from datetime import UTC
from math import ceil, log2

from django.db import migrations

WINDOW = 20_000
"""Keys that are read at once."""


def count_durations(apps, schema_editor):
    alias = schema_editor.connection.alias
    rows = apps.get_model("runs", "RunSearchRow").objects.using(alias).order_by("pk")
    counts, last = Counter(), 0
    while True:
        columns = ("pk", "ended_at", "run__agent", "run__owner", "seconds")
        window = list(rows.filter(pk__gt=last).values_list(*columns)[:WINDOW])
        if not window:
            break
        for last, ended, agent, owner, seconds in window:
            day = ended.astimezone(UTC).date()
            bucket = ceil(8 * log2(seconds / 0.05)) if seconds > 0.05 else 0
            counts[day, agent, owner, bucket] += 1
    model = apps.get_model("runs", "DailyRunDurations")
    model.objects.using(alias).bulk_create(
        (
            model(day=day, agent_id=agent, owner_id=owner, bucket=bucket, runs=runs)
            for (day, agent, owner, bucket), runs in counts.items()
        ),
        batch_size=1_000,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0036_retention"),
    ]

    operations = [
        migrations.RunPython(count_durations, migrations.RunPython.noop, elidable=True),
    ]
