"""Let experiments and gates replay recordings and make calls that only read."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0071_test_slots'),
    ]

    operations = [
        migrations.AlterField(
            model_name='experiment',
            name='tool_mode',
            field=models.CharField(choices=[('hold_back', 'Hold back: only calls that read are made'), ('replay_by_tool', 'Replay by tool'), ('replay_reads', 'Replay by tool; without a recording, calls that read are made'), ('replay_strict', 'Replay, strict'), ('live', 'Live: all calls are made')], default='hold_back', max_length=16),
        ),
        migrations.AlterField(
            model_name='gate',
            name='tool_mode',
            field=models.CharField(choices=[('hold_back', 'Hold back: only calls that read are made'), ('replay_by_tool', 'Replay by tool'), ('replay_reads', 'Replay by tool; without a recording, calls that read are made'), ('replay_strict', 'Replay, strict'), ('live', 'Live: all calls are made')], default='hold_back', max_length=16),
        ),
    ]
