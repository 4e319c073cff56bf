from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs", "0033_metrics"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("waiting_provider__isnull", False)),
                fields=["waiting_provider", "queued_at"],
                name="run_by_waiting_provider",
            ),
        ),
    ]
