"""Rights of the console: over bulk jobs, lanes, waits and destinations. No DDL."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0007_hold_until'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='destination',
            options={'permissions': [('try_destination', 'Can let a parked destination be tried at once')]},
        ),
        migrations.AlterModelOptions(
            name='job',
            options={'permissions': [('pause_job', 'Can pause bulk jobs'), ('resume_job', 'Can resume bulk jobs'), ('cancel_job', 'Can cancel bulk jobs'), ('throttle_job', 'Can change the rate of bulk jobs')]},
        ),
        migrations.AlterModelOptions(
            name='workitem',
            options={'permissions': [('replay_workitem', 'Can replay dead work'), ('cancel_workitem', 'Can cancel waiting work'), ('discard_workitem', 'Can discard dead work'), ('retry_workitem', 'Can end the wait of work that waits to retry'), ('hold_lane', 'Can hold lanes'), ('release_lane', 'Can release held lanes')]},
        ),
    ]
