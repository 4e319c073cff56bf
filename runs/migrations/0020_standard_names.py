"""Standard names: statuses `limit_reached` and `canceled`, tables and columns."""

import django.db.models.deletion
from django.db import migrations, models

STATUSES = {"stopped": "limit_reached", "cancelled": "canceled"}
EVENTS = {"run.stopped": "run.limit_reached", "run.cancelled": "run.canceled"}


def rename_values(apps, schema_editor):
    """Write the new words into rows, webhooks and saved filters."""
    change(apps, schema_editor, STATUSES, EVENTS)


def restore_values(apps, schema_editor):
    """Write the old words back."""
    change(
        apps,
        schema_editor,
        {new: old for old, new in STATUSES.items()},
        {new: old for old, new in EVENTS.items()},
    )


def change(apps, schema_editor, statuses, events):
    alias = schema_editor.connection.alias

    def rows(name):
        return apps.get_model("runs", name)._default_manager.using(alias)

    for name in ("Run", "AgentStep", "RunSearchRow", "DailyRunStats"):
        for old, new in statuses.items():
            rows(name).filter(status=old).update(status=new)
    for old, new in events.items():
        rows("Delivery").filter(event=old).update(event=new)
    for hook in rows("Webhook").all():
        hook.events = [events.get(event, event) for event in hook.events]
        hook.save(update_fields=["events"])
    for saved in rows("SavedFilter").all():
        query = saved.query
        for old, new in statuses.items():
            query = query.replace(f"status={old}", f"status={new}")
        if query != saved.query:
            saved.query = query
            saved.save(update_fields=["query"])


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0019_who_may_use"),
        ("tools", "0006_who_may_use"),
    ]

    operations = [
        migrations.RenameModel(old_name="EditingSpell", new_name="EditSession"),
        migrations.RenameModel(old_name="RunCard", new_name="RunSearchRow"),
        migrations.RenameModel(old_name="RunTally", new_name="DailyRunStats"),
        migrations.RenameField(
            model_name="editsession", old_name="began_at", new_name="started_at"
        ),
        migrations.RemoveConstraint(
            model_name="agentstep",
            name="agent_step_status_known",
        ),
        migrations.RemoveConstraint(
            model_name="delivery",
            name="delivery_over_has_an_end",
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="run_status_known",
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="run_over_has_an_end",
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="run_stopped_says_why",
        ),
        migrations.RemoveIndex(
            model_name="delivery",
            name="delivery_due",
        ),
        migrations.RemoveIndex(
            model_name="delivery",
            name="delivery_taken",
        ),
        migrations.RemoveIndex(
            model_name="run",
            name="run_unfiled",
        ),
        migrations.RemoveConstraint(model_name="dailyrunstats", name="run_tally_once"),
        migrations.RenameField(
            model_name="delivery",
            old_name="not_before",
            new_name="available_at",
        ),
        migrations.RenameField(
            model_name="delivery",
            old_name="rung_at",
            new_name="enqueued_at",
        ),
        migrations.RenameField(
            model_name="delivery",
            old_name="taken_until",
            new_name="lease_until",
        ),
        migrations.RenameField(
            model_name="delivery",
            old_name="answered",
            new_name="response_status",
        ),
        migrations.RenameField(
            model_name="delivery",
            old_name="answer",
            new_name="response_text",
        ),
        migrations.RenameField(
            model_name="modelattempt",
            old_name="shown",
            new_name="was_streamed",
        ),
        migrations.RenameField(
            model_name="run",
            old_name="not_before",
            new_name="available_at",
        ),
        migrations.RenameField(
            model_name="run",
            old_name="cancelled_by",
            new_name="canceled_by",
        ),
        migrations.RenameField(
            model_name="run",
            old_name="rung_at",
            new_name="enqueued_at",
        ),
        migrations.RenameField(
            model_name="run",
            old_name="filed",
            new_name="indexed",
        ),
        migrations.RenameField(
            model_name="run",
            old_name="rescues",
            new_name="recoveries",
        ),
        migrations.RenameField(
            model_name="runshare",
            old_name="seen",
            new_name="open_count",
        ),
        migrations.RenameField(
            model_name="worker",
            old_name="left_behind",
            new_name="abandoned_calls",
        ),
        migrations.AlterField(
            model_name="agentstep",
            name="status",
            field=models.CharField(
                choices=[
                    ("planned", "Planned"),
                    ("awaiting_approval", "Awaiting approval"),
                    ("started", "Running"),
                    ("succeeded", "Succeeded"),
                    ("failed", "Failed"),
                    ("rejected", "Rejected"),
                    ("unknown", "Outcome unknown"),
                    ("skipped", "Skipped"),
                    ("canceled", "Canceled"),
                ],
                default="planned",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("awaiting_approval", "Awaiting approval"),
                    ("awaiting_decision", "Awaiting decision"),
                    ("waiting", "Waiting"),
                    ("succeeded", "Succeeded"),
                    ("limit_reached", "Limit reached"),
                    ("failed", "Failed"),
                    ("canceled", "Canceled"),
                ],
                default="queued",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="runtool",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="called_tools",
                to="runs.run",
            ),
        ),
        migrations.RunPython(rename_values, restore_values),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", "waiting")),
                fields=["webhook", "available_at"],
                name="delivery_due",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("lease_until__isnull", False)),
                fields=["webhook"],
                name="delivery_leased",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("indexed", False)),
                fields=["id"],
                name="run_not_indexed",
            ),
        ),
        migrations.AddConstraint(
            model_name="agentstep",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            "planned",
                            "awaiting_approval",
                            "started",
                            "succeeded",
                            "failed",
                            "rejected",
                            "unknown",
                            "skipped",
                            "canceled",
                        ],
                    )
                ),
                name="agent_step_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("available_at__isnull", False),
                        ("ended_at", None),
                        ("status", "waiting"),
                    ),
                    models.Q(
                        models.Q(("status", "waiting"), _negated=True),
                        ("available_at", None),
                        ("ended_at__isnull", False),
                        ("lease_until", None),
                    ),
                    _connector="OR",
                ),
                name="delivery_over_has_an_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            "succeeded",
                            "limit_reached",
                            "failed",
                            "canceled",
                            "queued",
                            "running",
                            "awaiting_approval",
                            "awaiting_decision",
                            "waiting",
                        ],
                    )
                ),
                name="run_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", False),
                        (
                            "status__in",
                            ["succeeded", "limit_reached", "failed", "canceled"],
                        ),
                    ),
                    models.Q(
                        ("ended_at", None),
                        (
                            "status__in",
                            [
                                "queued",
                                "running",
                                "awaiting_approval",
                                "awaiting_decision",
                                "waiting",
                            ],
                        ),
                    ),
                    _connector="OR",
                ),
                name="run_over_has_an_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("status", "limit_reached"),
                        models.Q(("stop_reason", ""), _negated=True),
                    ),
                    models.Q(
                        models.Q(("status", "limit_reached"), _negated=True),
                        ("stop_reason", ""),
                    ),
                    _connector="OR",
                ),
                name="run_limit_has_a_reason",
            ),
        ),
        migrations.RenameIndex(
            model_name="runsearchrow",
            old_name="card_by_seconds",
            new_name="search_row_by_seconds",
        ),
        migrations.RenameIndex(
            model_name="runsearchrow",
            old_name="card_by_rounds",
            new_name="search_row_by_rounds",
        ),
        migrations.RenameIndex(
            model_name="runsearchrow",
            old_name="card_by_tokens",
            new_name="search_row_by_tokens",
        ),
        migrations.RenameIndex(
            model_name="runsearchrow",
            old_name="card_by_cost",
            new_name="search_row_by_cost",
        ),
        migrations.RenameIndex(
            model_name="run",
            old_name="run_of_schedule_at_work",
            new_name="run_unfinished_of_schedule",
        ),
        migrations.AddConstraint(
            model_name="dailyrunstats",
            constraint=models.UniqueConstraint(
                fields=("day", "agent", "owner", "status"), name="daily_run_stats_once"
            ),
        ),
        migrations.AlterField(
            model_name="runsearchrow",
            name="run",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="search_row",
                serialize=False,
                to="runs.run",
            ),
        ),
        migrations.AlterField(
            model_name="runsearchrow",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("awaiting_approval", "Awaiting approval"),
                    ("awaiting_decision", "Awaiting decision"),
                    ("waiting", "Waiting"),
                    ("succeeded", "Succeeded"),
                    ("limit_reached", "Limit reached"),
                    ("failed", "Failed"),
                    ("canceled", "Canceled"),
                ],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="dailyrunstats",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("awaiting_approval", "Awaiting approval"),
                    ("awaiting_decision", "Awaiting decision"),
                    ("waiting", "Waiting"),
                    ("succeeded", "Succeeded"),
                    ("limit_reached", "Limit reached"),
                    ("failed", "Failed"),
                    ("canceled", "Canceled"),
                ],
                max_length=20,
            ),
        ),
    ]
