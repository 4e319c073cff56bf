from typing import Any

from django.db import migrations, models


def note_other_models(apps: Any, schema_editor: Any) -> None:
    """Note the model of candidates with another one, which their labels end with."""
    rows = apps.get_model("runs", "ExperimentCandidate").objects.using(
        schema_editor.connection.alias
    )
    for row in rows.select_related("spec").iterator():
        model = row.spec.body.get("model", {}).get("model", "")
        if model and row.label.endswith(f", {model}"):
            row.changes = {"model": model}
            row.save(update_fields=["changes"])


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0068_experiment_lease_holder'),
    ]

    operations = [
        migrations.AddField(
            model_name='experimentcandidate',
            name='changes',
            field=models.JSONField(default=dict),
        ),
        migrations.RunPython(
            note_other_models, migrations.RunPython.noop, elidable=True
        ),
        migrations.RemoveField(
            model_name='bisection',
            name='model',
        ),
    ]
