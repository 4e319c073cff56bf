"""Sums of runs by slot alone and by day, so that Home reads few rows."""

from django.db import migrations, models

COUNTS = ("succeeded", "limit_reached", "failed", "canceled", "tokens", "cost")
DAY = {
    "postgresql": "(slot AT TIME ZONE 'UTC')::date",
    "sqlite": "date(slot)",
}


def fill_sums(connection):
    """Add up the slots that exist."""
    columns = ", ".join(COUNTS)
    sums = ", ".join(f"SUM({one})" for one in COUNTS)
    day = DAY[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(
            f"""INSERT INTO runs_runsumsslot
                (owner_number, slot, is_child, is_test, {columns})
            SELECT owner_number, slot, is_child, is_test, {sums}
            FROM runs_runstatsslot GROUP BY 1, 2, 3, 4"""  # noqa: S608  (our own words)
        )
        cursor.execute(
            f"""INSERT INTO runs_runstatsday
                (owner_number, day, agent_number, model, is_child, is_test, {columns})
            SELECT owner_number, {day}, agent_number, model, is_child, is_test, {sums}
            FROM runs_runstatsslot GROUP BY 1, 2, 3, 4, 5, 6"""  # noqa: S608  (our own words)
        )


def fill(apps, schema_editor):
    fill_sums(schema_editor.connection)


def count_fields():
    """Return the columns that both tables have."""
    return [
        *(
            (name, models.IntegerField(db_default=0, default=0))
            for name in ("succeeded", "limit_reached", "failed", "canceled")
        ),
        ("tokens", models.BigIntegerField(db_default=0, default=0)),
        (
            "cost",
            models.DecimalField(
                db_default=0, decimal_places=6, default=0, max_digits=16
            ),
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [("runs", "0073_test_indexes")]

    operations = [
        migrations.CreateModel(
            name="RunSumsSlot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("owner_number", models.BigIntegerField()),
                ("slot", models.DateTimeField()),
                ("is_child", models.BooleanField()),
                ("is_test", models.BooleanField()),
                *count_fields(),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner_number", "slot", "is_child", "is_test"),
                        name="run_sums_slot_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunStatsDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("owner_number", models.BigIntegerField()),
                ("day", models.DateField()),
                ("agent_number", models.BigIntegerField()),
                ("model", models.CharField(max_length=200)),
                ("is_child", models.BooleanField()),
                ("is_test", models.BooleanField()),
                *count_fields(),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            *("owner_number", "day", "agent_number", "model"),
                            *("is_child", "is_test"),
                        ),
                        name="run_stats_day_once",
                    )
                ],
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
