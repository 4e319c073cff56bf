from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0044_worker_waiting")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                fields=["owner", "-id"],
                include=(
                    *("status", "agent", "is_test", "indexed"),
                    *("created_at", "source", "parent_step"),
                ),
                name="run_list_by_owner",
            ),
        ),
        AddIndexConcurrently(
            model_name="runsearchrow",
            index=models.Index(
                fields=["run"], include=("seconds", "cost"), name="search_row_amounts"
            ),
        ),
        migrations.RemoveIndex(model_name="run", name="run_by_owner"),
    ]
