"""What an annotation did to an example, to undo it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0082_outage_of_a_model"),
    ]

    operations = [
        migrations.AddField(
            model_name="annotation",
            name="example_edit",
            field=models.JSONField(null=True),
        ),
    ]
