"""Runs that no evaluator was available for, and what a rule has used of a day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0077_called_specs"),
    ]

    operations = [
        migrations.AddField(
            model_name="scoringrule",
            name="used_day",
            field=models.DateField(null=True),
        ),
        migrations.AddField(
            model_name="scoringrule",
            name="used_runs",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="scoringrule",
            name="used_cost",
            field=models.DecimalField(
                db_default=0, decimal_places=6, default=0, max_digits=14
            ),
        ),
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
