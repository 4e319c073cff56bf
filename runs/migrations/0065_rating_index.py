from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0064_email")]

    operations = [
        AddIndexConcurrently(
            model_name="run",
            index=models.Index(
                condition=models.Q(("rating__isnull", False)),
                fields=["rating", "-id"],
                name="run_by_rating",
            ),
        ),
    ]
