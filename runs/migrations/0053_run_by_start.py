from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0052_run_limits")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(fields=["created_at"], name="run_by_start"),
        ),
    ]
