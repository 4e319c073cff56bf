"""What judges have cost, evaluators that do not apply, and figures to be renewed."""

from django.db import migrations, models

ADD_UP_JUDGES = """
UPDATE runs_experimentrun SET judge_cost = (
    SELECT SUM(cost) FROM runs_score WHERE cell_id = runs_experimentrun.id
) WHERE id IN (SELECT cell_id FROM runs_score WHERE cost > 0)
"""
FIND_INAPPLICABLE = """
UPDATE runs_score SET applies = FALSE
WHERE problem LIKE 'The example has no expected answer.%'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0075_judge_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="needs_figures",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="experimentrun",
            name="judge_cost",
            field=models.DecimalField(
                db_default=0, decimal_places=6, default=0, max_digits=14
            ),
        ),
        migrations.AddField(
            model_name="score",
            name="applies",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AlterField(
            model_name="score",
            name="source",
            field=models.CharField(
                choices=[("evaluator", "evaluator")], default="evaluator", max_length=10
            ),
        ),
        migrations.RunSQL(ADD_UP_JUDGES, migrations.RunSQL.noop),
        migrations.RunSQL(FIND_INAPPLICABLE, migrations.RunSQL.noop),
    ]
