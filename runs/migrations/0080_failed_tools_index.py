"""Mark the failed tools of ended runs, and index them."""

from django.db import migrations, models

from tools.concurrent_index import AddIndexConcurrently

MARK_FAILED_TOOLS = """
UPDATE runs_runtool SET has_failed = TRUE WHERE (run_id, tool) IN
  (SELECT run_id, tool FROM runs_agentstep WHERE status = 'failed')
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("runs", "0079_failed_tools"),
    ]

    operations = [
        migrations.RunSQL(MARK_FAILED_TOOLS, migrations.RunSQL.noop, elidable=True),
        AddIndexConcurrently(
            model_name="runtool",
            index=models.Index(
                condition=models.Q(has_failed=True),
                fields=["tool", "-run"],
                name="run_tool_by_failure",
            ),
        ),
    ]
