"""Which tools of a run failed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0078_rule_use_of_the_day"),
    ]

    operations = [
        migrations.AddField(
            model_name="runtool",
            name="has_failed",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
