from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("runs", "0056_provider_rates")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="trace_due_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="traceparent",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=55
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="traces_sent",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
