"""All tables, for a new database; an existing one runs what this replaces."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import tools.models
from django.conf import settings
from django.db import migrations, models

from tools.create_models import CreateModels


class Migration(migrations.Migration):
    replaces = [
        ("tools", "0001_squashed_0006_who_may_use"),
        ("tools", "0007_tool_names_in_any_language"),
        ("tools", "0008_mcp_descriptions"),
        ("tools", "0009_credential_origins"),
        ("tools", "0010_uploaded_document"),
        ("tools", "0011_mcp_sign_in"),
        ("tools", "0012_second_person"),
        ("tools", "0013_tool_trial"),
        ("tools", "0014_audit_link"),
        ("tools", "0015_service_account"),
        ("tools", "0016_stopped_trials"),
        ("tools", "0017_trials_of_new_tools"),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateModels([
        migrations.CreateModel(
            name='ServiceAccount',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='service_account', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('description', models.CharField(blank=True, max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('by', models.CharField(blank=True, max_length=150)),
                ('by_number', models.BigIntegerField(null=True)),
                ('way', models.CharField(choices=[('page', 'Page'), ('api', 'API'), ('server', 'Server'), ('link', 'E-mail link')], default='server', max_length=8)),
                ('action', models.CharField(max_length=30)),
                ('noun', models.CharField(max_length=30)),
                ('thing', models.CharField(max_length=200)),
                ('thing_number', models.BigIntegerField(null=True)),
                ('changes', models.JSONField(default=dict)),
                ('note', models.TextField(blank=True)),
            ],
            options={
                'verbose_name': 'audit log entry',
                'verbose_name_plural': 'audit log',
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['noun', 'thing_number'], name='audit_thing'), models.Index(fields=['by'], name='audit_by')],
            },
        ),
        migrations.CreateModel(
            name='Credential',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('visibility', models.CharField(choices=[('private', 'Only the owner'), ('groups', 'Selected groups'), ('everyone', 'Everyone')], default='private', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('name', models.CharField(max_length=120, verbose_name='Name')),
                ('kind', models.CharField(choices=[('header', 'Header'), ('bearer', 'Bearer token'), ('basic', 'Basic authentication'), ('query', 'Query parameter')], default='bearer', max_length=10, verbose_name='Kind')),
                ('field', models.CharField(blank=True, max_length=120)),
                ('hosts', models.JSONField(default=list)),
                ('sealed', models.TextField(blank=True)),
                ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'credential',
                'verbose_name_plural': 'credentials',
            },
        ),
        migrations.CreateModel(
            name='McpServer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('visibility', models.CharField(choices=[('private', 'Only the owner'), ('groups', 'Selected groups'), ('everyone', 'Everyone')], default='private', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('name', models.CharField(max_length=120, verbose_name='Name')),
                ('transport', models.CharField(choices=[('http', 'Streamable HTTP'), ('stdio', 'Command (stdio)')], default='http', max_length=10, verbose_name='Transport')),
                ('url', models.CharField(blank=True, max_length=500)),
                ('command', models.CharField(blank=True, max_length=80)),
                ('client_id', models.CharField(blank=True, db_default='', max_length=500, verbose_name='Client ID')),
                ('sealed_client_secret', models.TextField(blank=True, db_default='')),
                ('accepts_descriptions', models.BooleanField(db_default=False, default=False, verbose_name='Accept changed descriptions')),
                ('credential', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='tools.credential')),
                ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'MCP server',
                'verbose_name_plural': 'MCP servers',
            },
        ),
        migrations.CreateModel(
            name='McpSignIn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('resource', models.CharField(max_length=500)),
                ('token_endpoint', models.CharField(max_length=500)),
                ('client_id', models.CharField(max_length=500)),
                ('client_auth', models.CharField(max_length=30)),
                ('sealed_client_secret', models.TextField(blank=True)),
                ('sealed_access_token', models.TextField()),
                ('sealed_refresh_token', models.TextField(blank=True)),
                ('renew_at', models.DateTimeField(blank=True, null=True)),
                ('renewing_until', models.DateTimeField(blank=True, null=True)),
                ('connected_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='sign_in', to='tools.mcpserver')),
            ],
            options={
                'verbose_name': 'sign-in of an MCP server',
            },
        ),
        migrations.CreateModel(
            name='Tool',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('visibility', models.CharField(choices=[('private', 'Only the owner'), ('groups', 'Selected groups'), ('everyone', 'Everyone')], default='private', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('name', models.CharField(max_length=64, validators=[tools.models.validate_tool_name])),
                ('description', models.TextField(blank=True)),
                ('kind', models.CharField(default='function', max_length=20)),
                ('config', models.JSONField(blank=True, default=dict)),
                ('args_schema', models.JSONField(blank=True, null=True)),
                ('return_direct', models.BooleanField(default=False)),
                ('effect', models.CharField(choices=[('read', 'Read-only'), ('idempotent', 'Idempotent write (safe to repeat)'), ('side_effect', 'Side effect (not safe to repeat)')], default='side_effect', max_length=12, verbose_name='Effect')),
                ('approval', models.CharField(choices=[('never', 'Never'), ('side_effects', 'For side effects'), ('always', 'Always')], default='side_effects', max_length=12, verbose_name='Approval')),
                ('second_person', models.BooleanField(db_default=False, default=False)),
                ('approval_hours', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(8760)])),
                ('at_expiry', models.CharField(blank=True, choices=[('', 'Use the site default'), ('reject', 'Reject the call'), ('stop', 'Stop the run')], default='', max_length=6)),
                ('on_error', models.CharField(choices=[('feed_back', 'Return the error to the model'), ('end', 'End the run')], default='feed_back', max_length=10)),
                ('timeout', models.FloatField(default=60.0, validators=[django.core.validators.MinValueValidator(0.1), django.core.validators.MaxValueValidator(3600)])),
                ('retries', models.PositiveSmallIntegerField(default=0, validators=[django.core.validators.MaxValueValidator(5)])),
                ('calls_per_run', models.PositiveIntegerField(blank=True, null=True)),
                ('output_limit', models.PositiveIntegerField(blank=True, null=True)),
                ('hosts', models.JSONField(blank=True, default=list)),
                ('enabled', models.BooleanField(default=True, verbose_name='Enabled')),
                ('revision', models.PositiveIntegerField(default=1)),
                ('last_error', models.TextField(blank=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('approvers', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group')),
                ('credential', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='tools.credential')),
                ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group')),
                ('mcp_server', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='tools.mcpserver')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'tool',
                'verbose_name_plural': 'tools',
                'constraints': [models.CheckConstraint(condition=models.Q(('effect__in', ['read', 'idempotent', 'side_effect'])), name='tool_effect_known'), models.CheckConstraint(condition=models.Q(('approval__in', ['never', 'side_effects', 'always'])), name='tool_approval_known'), models.CheckConstraint(condition=models.Q(('timeout__gt', 0)), name='tool_timeout_positive')],
            },
        ),
        migrations.CreateModel(
            name='McpPin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('accepted', models.JSONField()),
                ('offered', models.JSONField(blank=True, null=True)),
                ('noticed_at', models.DateTimeField(blank=True, null=True)),
                ('tool', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='pin', to='tools.tool')),
            ],
        ),
        migrations.CreateModel(
            name='ToolRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('body', models.JSONField()),
                ('note', models.CharField(blank=True, max_length=200)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='tools.tool')),
            ],
            options={
                'ordering': ['-number'],
                'constraints': [models.UniqueConstraint(fields=('tool', 'number'), name='tool_revision_once')],
            },
        ),
        migrations.CreateModel(
            name='ToolTrial',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('draft', models.CharField(blank=True, db_default='', max_length=16)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('arguments', models.JSONField(null=True)),
                ('revision', models.PositiveIntegerField()),
                ('is_unsaved', models.BooleanField(db_default=False, default=False)),
                ('is_ok', models.BooleanField(db_default=False, default=False)),
                ('http_status', models.PositiveSmallIntegerField(null=True)),
                ('error_line', models.PositiveIntegerField(null=True)),
                ('is_stopped', models.BooleanField(db_default=False, default=False)),
                ('seconds', models.FloatField(db_default=0, default=0)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tool', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='tools.tool')),
            ],
            options={
                'indexes': [models.Index(fields=['tool', 'by', '-at'], name='tool_trials')],
            },
        ),
        migrations.CreateModel(
            name='ToolUsage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('calls', models.PositiveIntegerField(default=0)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('ms', models.PositiveBigIntegerField(default=0)),
                ('tool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage', to='tools.tool')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tool', 'hour'), name='tool_usage_once'), models.CheckConstraint(condition=models.Q(('failures__lte', models.F('calls'))), name='tool_usage_adds_up')],
            },
        ),
        migrations.CreateModel(
            name='UploadedDocument',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('body', models.BinaryField()),
                ('server_url', models.CharField(blank=True, db_default='', max_length=2000)),
                ('uploaded_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('credential', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='tools.credential')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        ]),
    ]
