"""The list of runs leaves test runs out, and reads them alone on request."""

from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0072_replay_reads")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("is_test", False), ("parent_step", None)),
                fields=["-id"],
                include=("created_at",),
                name="run_real",
            ),
        ),
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("is_test", True)), fields=["-id"], name="run_test"
            ),
        ),
    ]
