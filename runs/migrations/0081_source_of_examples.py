"""A source of examples: a deleted run of a conversation."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0080_failed_tools_index"),
    ]

    operations = [
        migrations.AlterField(
            model_name="example",
            name="source",
            field=models.CharField(
                choices=[
                    ("typed", "typed"),
                    ("import", "import"),
                    ("run", "run"),
                    ("chat", "run of a conversation"),
                ],
                default="typed",
                max_length=8,
            ),
        ),
    ]
