from django.db import migrations


def disable_omitted_guards(apps, schema_editor):
    """Agents have a loop guard by default now; those without one stay without."""
    set_omitted_guards(apps, schema_editor, None)


def enable_omitted_guards(apps, schema_editor):
    set_omitted_guards(apps, schema_editor, {})


def set_omitted_guards(apps, schema_editor, guard):
    alias = schema_editor.connection.alias
    agents = apps.get_model("runs", "Agent").objects.using(alias)
    for pk, executor in agents.values_list("pk", "executor").iterator():
        if "loop_guard" not in executor:
            agents.filter(pk=pk).update(executor={**executor, "loop_guard": guard})
    versions = apps.get_model("runs", "AgentVersion").objects.using(alias)
    stored = versions.filter(definition__isnull=False)
    for pk, definition in stored.values_list("pk", "definition").iterator():
        executor = definition.get("executor") or {}
        if "loop_guard" not in executor:
            definition["executor"] = {**executor, "loop_guard": guard}
            versions.filter(pk=pk).update(definition=definition)


class Migration(migrations.Migration):
    dependencies = [("runs", "0038_model_audio")]

    operations = [
        migrations.RunPython(
            disable_omitted_guards, enable_omitted_guards, elidable=True
        ),
    ]
