"""Calls from the form of a tool that is not created yet."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0016_stopped_trials"),
    ]

    operations = [
        migrations.AddField(
            model_name="tooltrial",
            name="draft",
            field=models.CharField(blank=True, db_default="", max_length=16),
        ),
        migrations.AlterField(
            model_name="tooltrial",
            name="tool",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="trials",
                to="tools.tool",
            ),
        ),
    ]
