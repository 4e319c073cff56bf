from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0040_run_slots")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status", "failed")),
                fields=["created_at"],
                name="run_failed_by_start",
            ),
        ),
    ]
