"""Count test runs and runs of experiments apart from others.

Those that retention rules have deleted before are still counted with the others.
"""

from importlib import import_module

from django.db import migrations, models

slots = import_module("runs.migrations.0040_run_slots")
COUNTS = (*slots.STATUSES, "tokens", "cost")


def split_slots(connection):
    """Move the test runs that still exist to rows of their own."""
    slot, model = slots.SLOT[connection.vendor], slots.MODEL[connection.vendor]
    source = "FROM runs_runsearchrow found JOIN runs_run run ON run.id = found.run_id"
    counts = ", ".join(
        f"SUM(CASE WHEN found.status = '{one}' THEN 1 ELSE 0 END)"
        for one in slots.STATUSES
    )
    with connection.cursor() as cursor:
        for owner in ("0", "run.owner_id"):
            cursor.execute(
                f"""INSERT INTO runs_runstatsslot (owner_number, slot, agent_number,
                    model, is_child, is_test, {", ".join(COUNTS)})
                SELECT {owner} AS who, {slot} AS slot, run.agent_id, {model} AS model,
                    run.parent_step_id IS NOT NULL, TRUE, {counts}, SUM(found.tokens),
                    SUM(found.cost)
                {source} JOIN runs_spec spec ON spec.id = run.spec_id
                WHERE run.is_test
                GROUP BY 1, 2, 3, 4, 5"""  # noqa: S608  (our own words)
            )
            cursor.execute(
                f"""INSERT INTO runs_rundurationslot
                    (owner_number, slot, bucket, is_test, runs)
                SELECT {owner} AS who, {slot} AS slot, {slots.BUCKET} AS bucket, TRUE,
                    COUNT(*)
                {source} WHERE run.parent_step_id IS NULL AND run.is_test
                GROUP BY 1, 2, 3"""  # noqa: S608  (our own words)
            )
        subtract_test_rows(
            cursor,
            "runs_runstatsslot",
            ("owner_number", "slot", "agent_number", "model", "is_child"),
            COUNTS,
        )
        subtract_test_rows(
            cursor, "runs_rundurationslot", ("owner_number", "slot", "bucket"), ["runs"]
        )


def subtract_test_rows(cursor, table, keys, counts):
    """Subtract the rows of test runs from the others with the same keys."""
    cursor.execute(
        f"""UPDATE {table}
        SET {", ".join(f"{one} = {table}.{one} - tests.{one}" for one in counts)}
        FROM {table} AS tests
        WHERE tests.is_test AND NOT {table}.is_test
            AND {" AND ".join(f"{table}.{one} = tests.{one}" for one in keys)}
        """  # noqa: S608  (our own words)
    )


def count_tests_apart(apps, schema_editor):
    split_slots(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("runs", "0070_token_oauth_code")]

    operations = [
        migrations.RemoveConstraint("rundurationslot", "run_duration_slot_once"),
        migrations.RemoveConstraint("runstatsslot", "run_stats_slot_once"),
        migrations.AddField(
            "rundurationslot",
            "is_test",
            models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            "runstatsslot",
            "is_test",
            models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddConstraint(
            "rundurationslot",
            models.UniqueConstraint(
                fields=("owner_number", "slot", "bucket", "is_test"),
                name="run_duration_slot_once",
            ),
        ),
        migrations.AddConstraint(
            "runstatsslot",
            models.UniqueConstraint(
                fields=(
                    *("owner_number", "slot", "agent_number", "model"),
                    *("is_child", "is_test"),
                ),
                name="run_stats_slot_once",
            ),
        ),
        migrations.RunPython(
            count_tests_apart, migrations.RunPython.noop, elidable=True
        ),
    ]
