"""The tables of version 0.1.0, made by migrations 0001 to 0006 before."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
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
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('by', models.CharField(blank=True, max_length=150)),
                ('by_number', models.BigIntegerField(null=True)),
                ('way', models.CharField(choices=[('page', 'Page'), ('api', 'API'), ('server', 'Server')], default='server', max_length=8)),
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
                ('credential', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='tools.credential')),
                ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
                'verbose_name': 'MCP server',
                'verbose_name_plural': 'MCP servers',
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
                ('name', models.CharField(max_length=64, validators=[django.core.validators.RegexValidator('\\A[a-zA-Z0-9_-]{1,64}\\Z', 'Enter 1 to 64 letters, digits, underscores or hyphens.')])),
                ('description', models.TextField(blank=True)),
                ('kind', models.CharField(default='function', max_length=20)),
                ('config', models.JSONField(blank=True, default=dict)),
                ('args_schema', models.JSONField(blank=True, null=True)),
                ('return_direct', models.BooleanField(default=False)),
                ('effect', models.CharField(choices=[('read', 'Read-only'), ('idempotent', 'Idempotent write (safe to repeat)'), ('side_effect', 'Side effect (not safe to repeat)')], default='side_effect', max_length=12, verbose_name='Effect')),
                ('approval', models.CharField(choices=[('never', 'Never'), ('side_effects', 'For side effects'), ('always', 'Always')], default='side_effects', max_length=12, verbose_name='Approval')),
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
                ('credential', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='tools.credential')),
                ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group')),
                ('mcp_server', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='tools.mcpserver')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('approval_hours', models.FloatField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(8760)])),
                ('approvers', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='auth.group')),
                ('at_expiry', models.CharField(blank=True, choices=[('', 'Use the site default'), ('reject', 'Reject the call'), ('stop', 'Stop the run')], default='', max_length=6)),
            ],
            options={
                'verbose_name': 'tool',
                'verbose_name_plural': 'tools',
                'constraints': [models.CheckConstraint(condition=models.Q(('effect__in', ['read', 'idempotent', 'side_effect'])), name='tool_effect_known'), models.CheckConstraint(condition=models.Q(('approval__in', ['never', 'side_effects', 'always'])), name='tool_approval_known'), models.CheckConstraint(condition=models.Q(('timeout__gt', 0)), name='tool_timeout_positive')],
            },
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
            name='McpPin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('accepted', models.JSONField()),
                ('offered', models.JSONField(blank=True, null=True)),
                ('noticed_at', models.DateTimeField(blank=True, null=True)),
                ('tool', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='pin', to='tools.tool')),
            ],
        ),
    ]
