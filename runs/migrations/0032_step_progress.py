from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0031_model_images"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentstep",
            name="progress",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
    ]
