"""Runs that no evaluator was available for, and what a rule has used of a day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0077_called_specs"),
    ]

    operations = [
        migrations.AlterField(
            model_name="scoredrun",
            name="state",
            field=models.CharField(
                choices=[
                    ("waiting", "Waiting"),
                    ("done", "Scored"),
                    ("skipped", "Over a limit of the day"),
                    ("unscored", "No evaluator available"),
                ],
                default="waiting",
                max_length=8,
            ),
        ),
    ]
