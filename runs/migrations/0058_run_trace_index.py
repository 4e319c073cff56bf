from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0057_run_traces")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("trace_due_at__isnull", False)),
                fields=["trace_due_at"],
                name="run_trace_due",
            ),
        ),
    ]
