"""The tables of version 0.1.0, made by migrations 0001 to 0021 before."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import DatabaseError, migrations, models, transaction


def create_text_index(apps, schema_editor):
    """Index the text of search rows by trigrams if PostgreSQL permits the extension.

    Without the extension a search reads every row: slower, never wrong.
    """
    if schema_editor.connection.vendor != "postgresql":
        return
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            schema_editor.execute(
                "CREATE INDEX card_by_text ON runs_runsearchrow"
                " USING gin (text gin_trgm_ops)"
            )
    except DatabaseError as error:
        print(f"\n  Searching a million runs will be slow: {error}", end="")


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("tools", "0001_squashed_0006_who_may_use"),
    ]

    operations = [
        migrations.CreateModel(
            name="Spec",
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
                ("digest", models.CharField(max_length=64, unique=True)),
                ("body", models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name="Worker",
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
                ("name", models.CharField(max_length=120, unique=True)),
                ("host", models.CharField(max_length=120)),
                ("pid", models.PositiveIntegerField()),
                ("pool", models.CharField(default="threads", max_length=20)),
                ("threads", models.PositiveIntegerField(default=1)),
                ("running", models.PositiveIntegerField(default=0)),
                ("version", models.CharField(blank=True, max_length=40)),
                ("started_at", models.DateTimeField()),
                ("last_heartbeat", models.DateTimeField()),
                ("stopped_at", models.DateTimeField(null=True)),
                ("abandoned_calls", models.PositiveIntegerField(default=0)),
            ],
            options={
                "ordering": ["-last_heartbeat"],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
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
                ("name", models.CharField(blank=True, max_length=120)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LoginLink",
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
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Preferences",
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
                ("theme", models.CharField(default="system", max_length=8)),
                ("time_zone", models.CharField(blank=True, max_length=60)),
                ("hides_first_steps", models.BooleanField(default=False)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preferences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("language", models.CharField(blank=True, max_length=16)),
            ],
        ),
        migrations.CreateModel(
            name="PromptTemplate",
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
                ("slug", models.SlugField(max_length=80, unique=True)),
                (
                    "visibility",
                    models.CharField(
                        choices=[
                            ("private", "Only the owner"),
                            ("groups", "Selected groups"),
                            ("everyone", "Everyone"),
                        ],
                        default="private",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=120)),
                ("kind", models.CharField(default="react", max_length=30)),
                ("template", models.TextField(blank=True)),
                ("messages", models.JSONField(blank=True, null=True)),
                ("partials", models.JSONField(blank=True, default=dict)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True, related_name="+", to="auth.group"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Provider",
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
                ("slug", models.SlugField(max_length=80, unique=True)),
                (
                    "visibility",
                    models.CharField(
                        choices=[
                            ("private", "Only the owner"),
                            ("groups", "Selected groups"),
                            ("everyone", "Everyone"),
                        ],
                        default="private",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=120)),
                ("kind", models.CharField(default="openai", max_length=20)),
                ("base_url", models.CharField(blank=True, max_length=500)),
                ("key_env", models.CharField(blank=True, max_length=120)),
                ("sealed_key", models.TextField(blank=True)),
                ("sealed_headers", models.TextField(blank=True)),
                (
                    "timeout",
                    models.FloatField(
                        default=60.0,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3600),
                        ],
                    ),
                ),
                ("default_model", models.CharField(blank=True, max_length=200)),
                ("stream", models.BooleanField(default=True)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True, related_name="+", to="auth.group"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("test_error", models.TextField(blank=True)),
                ("tested_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("timeout__gt", 0)),
                        name="provider_timeout_positive",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
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
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=1000)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "name"), name="saved_filter_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueSample",
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
                ("minute", models.DateTimeField(unique=True)),
                ("queued", models.PositiveIntegerField()),
                ("running", models.PositiveIntegerField()),
                ("wait", models.FloatField()),
                ("workers", models.PositiveIntegerField()),
            ],
            options={
                "ordering": ["minute"],
            },
        ),
        migrations.CreateModel(
            name="Agent",
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
                ("slug", models.SlugField(max_length=80, unique=True)),
                (
                    "visibility",
                    models.CharField(
                        choices=[
                            ("private", "Only the owner"),
                            ("groups", "Selected groups"),
                            ("everyone", "Everyone"),
                        ],
                        default="private",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=120)),
                ("description", models.TextField(blank=True)),
                ("kind", models.CharField(default="tool-calling", max_length=30)),
                ("model", models.CharField(max_length=200)),
                ("parameters", models.JSONField(blank=True, default=dict)),
                ("executor", models.JSONField(blank=True, default=dict)),
                ("memory", models.BooleanField(default=False)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True, related_name="+", to="auth.group"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "prompt",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="agents",
                        to="runs.prompttemplate",
                    ),
                ),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="agents",
                        to="runs.provider",
                    ),
                ),
                ("is_playground", models.BooleanField(default=False)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ProviderModel",
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
                ("name", models.CharField(max_length=200)),
                ("functions", models.BooleanField(null=True)),
                ("stop_words", models.BooleanField(null=True)),
                ("streaming", models.BooleanField(null=True)),
                ("context_tokens", models.PositiveIntegerField(null=True)),
                (
                    "input_price",
                    models.DecimalField(decimal_places=4, max_digits=12, null=True),
                ),
                (
                    "cached_price",
                    models.DecimalField(decimal_places=4, max_digits=12, null=True),
                ),
                (
                    "output_price",
                    models.DecimalField(decimal_places=4, max_digits=12, null=True),
                ),
                ("seen_at", models.DateTimeField(null=True)),
                ("edited", models.JSONField(default=list)),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="models",
                        to="runs.provider",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("provider", "name"), name="provider_model_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentVersion",
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
                ("number", models.PositiveIntegerField()),
                ("note", models.CharField(blank=True, max_length=200)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="runs.agent",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.spec",
                    ),
                ),
                ("definition", models.JSONField(null=True)),
            ],
            options={
                "ordering": ["-number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent", "number"), name="agent_version_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Conversation",
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
                ("title", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="conversations",
                        to="runs.agent",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="conversations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("is_test", models.BooleanField(default=False)),
                ("branch_at", models.PositiveBigIntegerField(db_index=True, null=True)),
                (
                    "branch_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="branches",
                        to="runs.conversation",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AgentTool",
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
                ("position", models.PositiveSmallIntegerField(default=0)),
                (
                    "policy",
                    models.CharField(
                        choices=[
                            ("default", "Use the tool's setting"),
                            ("allow", "Allow"),
                            ("ask", "Require approval"),
                            ("deny", "Deny"),
                        ],
                        default="default",
                        max_length=8,
                    ),
                ),
                ("overrides", models.JSONField(blank=True, default=dict)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="runs.agent",
                    ),
                ),
                (
                    "sub_agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="used_by",
                        to="runs.agent",
                    ),
                ),
                (
                    "tool",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="used_by",
                        to="tools.tool",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("sub_agent__isnull", False), ("tool", None)),
                            models.Q(("sub_agent", None), ("tool__isnull", False)),
                            _connector="OR",
                        ),
                        name="agent_tool_exactly_one",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("tool__isnull", False)),
                        fields=("agent", "tool"),
                        name="agent_tool_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("sub_agent__isnull", False)),
                        fields=("agent", "sub_agent"),
                        name="agent_sub_agent_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
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
                ("name", models.CharField(max_length=120)),
                ("inputs", models.JSONField(default=dict)),
                ("cron", models.CharField(max_length=120)),
                ("time_zone", models.CharField(default="UTC", max_length=60)),
                (
                    "overlap",
                    models.CharField(
                        choices=[
                            ("skip", "Skip that run"),
                            ("start", "Start another run in parallel"),
                        ],
                        default="skip",
                        max_length=5,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("next_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("missed", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                ("problem", models.TextField(blank=True)),
                ("problem_at", models.DateTimeField(null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedules",
                        to="runs.agent",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedules",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["next_at"],
                        name="schedule_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "name"), name="schedule_name_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("problem", ""), ("problem_at", None)),
                            models.Q(
                                models.Q(("problem", ""), _negated=True),
                                ("problem_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="schedule_problem_has_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
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
                ("name", models.CharField(max_length=120)),
                ("host", models.CharField(max_length=300)),
                ("sealed_url", models.TextField()),
                (
                    "shape",
                    models.CharField(
                        choices=[
                            ("event", "Event as JSON"),
                            ("text", "Text message for a chat"),
                        ],
                        default="event",
                        max_length=8,
                    ),
                ),
                ("events", models.JSONField(default=list)),
                ("everything", models.BooleanField(default=False)),
                ("is_on", models.BooleanField(default=True)),
                ("sealed_secret", models.TextField()),
                ("sealed_old_secret", models.TextField(blank=True)),
                ("old_secret_until", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="runs.agent",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("everything", True)),
                        fields=["id"],
                        name="webhook_of_all",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EditSession",
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
                ("by", models.CharField(max_length=150)),
                ("by_number", models.BigIntegerField()),
                ("way", models.CharField(max_length=8)),
                ("last_at", models.DateTimeField(db_index=True)),
                ("before", models.JSONField()),
                (
                    "agent",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="runs.agent",
                    ),
                ),
                ("started_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="DailyRunStats",
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
                ("day", models.DateField()),
                (
                    "status",
                    models.CharField(
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
                ("runs", models.IntegerField(default=0)),
                ("tokens", models.BigIntegerField(default=0)),
                (
                    "cost",
                    models.DecimalField(decimal_places=6, default=0, max_digits=16),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="runs.agent",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "agent", "owner", "status"),
                        name="daily_run_stats_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
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
                ("fork_index", models.PositiveIntegerField(null=True)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("page", "in the dashboard"),
                            ("api", "through the API"),
                            ("schedule", "by a schedule"),
                            ("parent", "by another run"),
                        ],
                        default="page",
                        max_length=8,
                    ),
                ),
                ("is_test", models.BooleanField(default=False)),
                ("title", models.CharField(blank=True, max_length=200)),
                ("inputs", models.JSONField(default=dict)),
                ("turn_ids", models.JSONField(default=list)),
                (
                    "status",
                    models.CharField(
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
                (
                    "stop_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("iterations", "Round limit reached"),
                            ("time", "Time limit reached"),
                            ("tokens", "Token budget used up"),
                            ("cost", "Cost budget used up"),
                            ("loop", "Loop without progress"),
                            ("expired", "Approval expired"),
                        ],
                        max_length=12,
                    ),
                ),
                ("error_code", models.CharField(blank=True, max_length=40)),
                ("error_message", models.TextField(blank=True)),
                ("output", models.JSONField(null=True)),
                ("output_log", models.TextField(blank=True)),
                ("seq", models.PositiveBigIntegerField(default=0)),
                ("next_index", models.PositiveIntegerField(default=0)),
                ("next_number", models.PositiveIntegerField(default=0)),
                ("fence", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("queued_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("rounds", models.PositiveIntegerField(default=0)),
                ("model_calls", models.PositiveIntegerField(default=0)),
                ("input_tokens", models.PositiveBigIntegerField(default=0)),
                ("output_tokens", models.PositiveBigIntegerField(default=0)),
                (
                    "cost",
                    models.DecimalField(decimal_places=6, default=0, max_digits=14),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.agent",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.conversation",
                    ),
                ),
                (
                    "forked_from",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="forks",
                        to="runs.run",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.agentversion",
                    ),
                ),
                (
                    "spec",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.spec",
                    ),
                ),
                (
                    "worker",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="runs.worker",
                    ),
                ),
                ("fork_edits", models.JSONField(default=list)),
                ("fork_row", models.PositiveIntegerField(null=True)),
                ("turns_seen_at", models.DateTimeField(null=True)),
                ("rating", models.SmallIntegerField(null=True)),
                ("earlier_inputs", models.JSONField(null=True)),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="runs.schedule",
                    ),
                ),
                ("available_at", models.DateTimeField(null=True)),
                (
                    "canceled_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("enqueued_at", models.DateTimeField(null=True)),
                ("indexed", models.BooleanField(db_default=False, default=False)),
                ("recoveries", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "-id"], name="run_by_owner"),
                    models.Index(fields=["agent", "-id"], name="run_by_agent"),
                    models.Index(fields=["status", "-id"], name="run_by_status"),
                    models.Index(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "queued",
                                    "running",
                                    "awaiting_approval",
                                    "awaiting_decision",
                                    "waiting",
                                ],
                            )
                        ),
                        fields=["queued_at"],
                        name="run_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(("schedule__isnull", False)),
                        fields=["schedule", "-id"],
                        name="run_by_schedule",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("ended_at", None), ("schedule__isnull", False)
                        ),
                        fields=["schedule", "ended_at"],
                        name="run_unfinished_of_schedule",
                    ),
                    models.Index(
                        condition=models.Q(("indexed", False)),
                        fields=["id"],
                        name="run_not_indexed",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("lease_until__isnull", False), ("status", "running")
                            ),
                            models.Q(
                                models.Q(("status", "running"), _negated=True),
                                ("lease_until", None),
                            ),
                            _connector="OR",
                        ),
                        name="run_lease_while_running_only",
                    ),
                    models.CheckConstraint(
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
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at__isnull", False),
                                (
                                    "status__in",
                                    [
                                        "succeeded",
                                        "limit_reached",
                                        "failed",
                                        "canceled",
                                    ],
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
                    models.CheckConstraint(
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
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelCall",
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
                ("number", models.PositiveIntegerField()),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("plan", "Next action"),
                            ("early_stop", "Final answer at a limit"),
                            ("summary", "Summary of earlier rounds"),
                        ],
                        default="plan",
                        max_length=10,
                    ),
                ),
                ("at_index", models.PositiveIntegerField()),
                ("round", models.PositiveIntegerField()),
                ("reply", models.JSONField()),
                ("settings", models.JSONField(default=dict)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("digest", models.CharField(max_length=64)),
                ("left_out", models.JSONField(default=list)),
                ("input_tokens", models.PositiveIntegerField(default=0)),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("output_tokens", models.PositiveIntegerField(default=0)),
                ("reasoning_tokens", models.PositiveIntegerField(default=0)),
                (
                    "cost",
                    models.DecimalField(decimal_places=6, default=0, max_digits=14),
                ),
                ("started_at", models.DateTimeField()),
                ("first_token", models.FloatField(null=True)),
                ("elapsed", models.FloatField()),
                ("created_seq", models.PositiveBigIntegerField()),
                ("changed_seq", models.PositiveBigIntegerField()),
                (
                    "copied_from",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="runs.modelcall",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="runs.run",
                    ),
                ),
                ("is_copied", models.BooleanField(default=False)),
                ("is_edited", models.BooleanField(default=False)),
                (
                    "spec",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.spec",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "indexes": [
                    models.Index(fields=["run", "changed_seq"], name="call_changed")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "number"), name="model_call_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Resume",
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
                ("at_index", models.PositiveIntegerField()),
                ("at_number", models.PositiveIntegerField()),
                ("limits", models.JSONField(default=dict)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="resumes",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="ModelAttempt",
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
                ("number", models.PositiveIntegerField()),
                ("attempt", models.PositiveIntegerField()),
                ("code", models.CharField(max_length=40)),
                ("message", models.TextField()),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("retry_in", models.FloatField(null=True)),
                ("started_at", models.DateTimeField()),
                ("elapsed", models.FloatField()),
                ("created_seq", models.PositiveBigIntegerField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="runs.run",
                    ),
                ),
                ("was_streamed", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["number", "attempt"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "number", "attempt"), name="model_attempt_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
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
                ("key", models.CharField(max_length=200)),
                ("body_digest", models.CharField(max_length=64)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "key"), name="idempotency_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Allowance",
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
                ("tool", models.CharField(max_length=200)),
                ("reason", models.TextField(blank=True)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "revoked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="allowances",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("revoked_at", None)),
                        fields=("run", "tool"),
                        name="allowance_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunTag",
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
                ("name", models.CharField(max_length=40)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tags",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "indexes": [
                    models.Index(fields=["name", "-run"], name="run_tag_by_name")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "name"), name="run_tag_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RunTool",
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
                ("tool", models.CharField(max_length=200)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="called_tools",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tool", "-run"], name="run_tool_by_tool")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "tool"), name="run_tool_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunShare",
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
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to="runs.run",
                    ),
                ),
                ("open_count", models.PositiveIntegerField(default=0)),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
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
                ("seq", models.PositiveBigIntegerField(default=0)),
                ("event", models.CharField(max_length=24)),
                ("facts", models.JSONField(default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("failed", "Failed"),
                        ],
                        db_default="waiting",
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("error", models.TextField(db_default="", default="")),
                ("duration_ms", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="runs.run",
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="runs.webhook",
                    ),
                ),
                ("available_at", models.DateTimeField(null=True)),
                ("enqueued_at", models.DateTimeField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                ("response_text", models.TextField(db_default="", default="")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["webhook", "-id"], name="delivery_by_webhook"),
                    models.Index(fields=["created_at"], name="delivery_by_age"),
                    models.Index(
                        condition=models.Q(("status", "waiting")),
                        fields=["webhook", "available_at"],
                        name="delivery_due",
                    ),
                    models.Index(
                        condition=models.Q(("lease_until__isnull", False)),
                        fields=["webhook"],
                        name="delivery_leased",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("webhook", "run", "seq"), name="delivery_once"
                    ),
                    models.CheckConstraint(
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
                ],
            },
        ),
        migrations.CreateModel(
            name="RunSearchRow",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="search_row",
                        serialize=False,
                        to="runs.run",
                    ),
                ),
                ("text", models.TextField()),
                ("seconds", models.FloatField()),
                ("rounds", models.PositiveIntegerField()),
                ("tokens", models.PositiveBigIntegerField()),
                ("cost", models.DecimalField(decimal_places=6, max_digits=14)),
                ("ended_at", models.DateTimeField()),
                (
                    "status",
                    models.CharField(
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
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["seconds", "run"], name="search_row_by_seconds"
                    ),
                    models.Index(fields=["rounds", "run"], name="search_row_by_rounds"),
                    models.Index(fields=["tokens", "run"], name="search_row_by_tokens"),
                    models.Index(fields=["cost", "run"], name="search_row_by_cost"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentStep",
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
                ("index", models.PositiveIntegerField()),
                ("round", models.PositiveIntegerField()),
                ("tool", models.CharField(max_length=200)),
                ("tool_input", models.JSONField(null=True)),
                ("log", models.TextField(blank=True)),
                ("call_id", models.TextField(blank=True)),
                ("effect", models.CharField(blank=True, max_length=12)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("planned", "Planned"),
                            ("awaiting_approval", "Awaiting approval"),
                            ("started", "Running"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("rejected", "Rejected"),
                            ("unknown", "Unknown outcome"),
                            ("skipped", "Skipped"),
                            ("canceled", "Canceled"),
                        ],
                        default="planned",
                        max_length=20,
                    ),
                ),
                ("observation", models.TextField(blank=True)),
                ("value", models.JSONField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("elapsed", models.FloatField(null=True)),
                ("duration", models.FloatField(null=True)),
                ("created_seq", models.PositiveBigIntegerField()),
                ("changed_seq", models.PositiveBigIntegerField()),
                (
                    "copied_from",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="runs.agentstep",
                    ),
                ),
                (
                    "tool_ref",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="tools.tool",
                    ),
                ),
                (
                    "model_call",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="runs.modelcall",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="runs.run",
                    ),
                ),
                ("is_copied", models.BooleanField(default=False)),
                ("is_edited", models.BooleanField(default=False)),
                ("usage", models.JSONField(null=True)),
            ],
            options={
                "ordering": ["index"],
                "indexes": [
                    models.Index(fields=["run", "changed_seq"], name="step_changed")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "index"), name="agent_step_once"
                    ),
                    models.CheckConstraint(
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
                ],
            },
        ),
        migrations.CreateModel(
            name="Decision",
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
                (
                    "question",
                    models.CharField(
                        choices=[
                            ("approval", "Approve this call?"),
                            ("outcome", "Did this call happen?"),
                        ],
                        max_length=10,
                    ),
                ),
                ("shown", models.JSONField()),
                ("shown_digest", models.CharField(max_length=64)),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("expired", "Expired"),
                            ("withdrawn", "Run ended first"),
                            ("happened", "Happened"),
                            ("retry", "Did not happen, retried"),
                            ("skip", "Skipped"),
                            ("fail", "Run failed"),
                        ],
                        max_length=10,
                    ),
                ),
                ("edited_input", models.JSONField(null=True)),
                ("reason", models.TextField(blank=True)),
                ("at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "step",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="decisions",
                        to="runs.agentstep",
                    ),
                ),
                (
                    "approvers",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                (
                    "at_expiry",
                    models.CharField(
                        choices=[
                            ("reject", "Reject the call"),
                            ("stop", "Stop the run"),
                        ],
                        default="reject",
                        max_length=6,
                    ),
                ),
                ("runs_digest", models.CharField(blank=True, max_length=64)),
                (
                    "allowance",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="decisions",
                        to="runs.allowance",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("answer", "")),
                        fields=("step",),
                        name="decision_open_once",
                    )
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("answer", "")),
                        fields=["expires_at"],
                        name="decision_open",
                    ),
                    models.Index(fields=["-at"], name="decision_newest"),
                ],
            },
        ),
        migrations.AddField(
            model_name="schedule",
            name="last_run",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="runs.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="parent_step",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="child",
                to="runs.agentstep",
            ),
        ),
        migrations.RunPython(create_text_index, migrations.RunPython.noop),
    ]
