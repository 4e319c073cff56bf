"""Count the runs that are indexed already by the quarter of an hour of their start.

Runs that retention rules have deleted before are in the daily figures only.
"""

from django.db import migrations, models

SLOT = {
    "postgresql": "to_timestamp(floor(extract(epoch FROM run.created_at) / 900) * 900)",
    "sqlite": "strftime('%Y-%m-%d %H:', run.created_at) || "
    "printf('%02d:00', strftime('%M', run.created_at) / 15 * 15)",
}
MODEL = {
    "postgresql": "left(coalesce(spec.body #>> '{model,model}', ''), 200)",
    "sqlite": "substr(coalesce(json_extract(spec.body, '$.model.model'), ''), 1, 200)",
}
BUCKET = """CASE WHEN found.seconds <= 0.05 THEN 0
    ELSE CAST(ceiling(8 * ln(found.seconds / 0.05) / ln(2.0)) AS integer) END"""
STATUSES = ("succeeded", "limit_reached", "failed", "canceled")


def fill_slots(connection):
    """Fill both tables, which are empty, for everyone and for each owner."""
    slot, model = SLOT[connection.vendor], MODEL[connection.vendor]
    source = "FROM runs_runsearchrow found JOIN runs_run run ON run.id = found.run_id"
    counts = ", ".join(
        f"SUM(CASE WHEN found.status = '{one}' THEN 1 ELSE 0 END)" for one in STATUSES
    )
    with connection.cursor() as cursor:
        for owner in ("0", "run.owner_id"):
            cursor.execute(
                f"""INSERT INTO runs_runstatsslot (owner_number, slot, agent_number,
                    model, is_child, {", ".join(STATUSES)}, tokens, cost)
                SELECT {owner} AS who, {slot} AS slot, run.agent_id, {model} AS model,
                    run.parent_step_id IS NOT NULL, {counts}, SUM(found.tokens),
                    SUM(found.cost)
                {source} JOIN runs_spec spec ON spec.id = run.spec_id
                GROUP BY 1, 2, 3, 4, 5
                ORDER BY 2"""  # noqa: S608  (our own words)
            )
            cursor.execute(
                f"""INSERT INTO runs_rundurationslot (owner_number, slot, bucket, runs)
                SELECT {owner} AS who, {slot} AS slot, {BUCKET} AS bucket, COUNT(*)
                {source} WHERE run.parent_step_id IS NULL
                GROUP BY 1, 2, 3
                ORDER BY 2"""  # noqa: S608  (our own words)
            )


def count_indexed_runs(apps, schema_editor):
    fill_slots(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("runs", "0039_loop_guard")]

    operations = [
        migrations.CreateModel(
            name="RunDurationSlot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("owner_number", models.BigIntegerField()),
                ("slot", models.DateTimeField()),
                ("bucket", models.SmallIntegerField()),
                ("runs", models.IntegerField(db_default=0, default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner_number", "slot", "bucket"),
                        name="run_duration_slot_once",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="RunStatsSlot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("owner_number", models.BigIntegerField()),
                ("slot", models.DateTimeField()),
                ("agent_number", models.BigIntegerField()),
                ("model", models.CharField(max_length=200)),
                ("is_child", models.BooleanField()),
                ("succeeded", models.IntegerField(db_default=0, default=0)),
                ("limit_reached", models.IntegerField(db_default=0, default=0)),
                ("failed", models.IntegerField(db_default=0, default=0)),
                ("canceled", models.IntegerField(db_default=0, default=0)),
                ("tokens", models.BigIntegerField(db_default=0, default=0)),
                (
                    "cost",
                    models.DecimalField(
                        db_default=0, decimal_places=6, default=0, max_digits=16
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "owner_number",
                            "slot",
                            "agent_number",
                            "model",
                            "is_child",
                        ),
                        name="run_stats_slot_once",
                    )
                ]
            },
        ),
        migrations.RunPython(
            count_indexed_runs, migrations.RunPython.noop, elidable=True
        ),
    ]
