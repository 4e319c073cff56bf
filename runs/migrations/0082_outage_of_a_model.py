"""Outages of one model of a provider."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0081_source_of_examples"),
    ]

    operations = [
        migrations.AddField(
            model_name="provideroutage",
            name="model",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.AlterField(
            model_name="provideroutage",
            name="provider",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="outages",
                to="runs.provider",
            ),
        ),
        migrations.AddConstraint(
            model_name="provideroutage",
            constraint=models.UniqueConstraint(
                fields=("provider", "model"), name="provider_outage_once"
            ),
        ),
    ]
