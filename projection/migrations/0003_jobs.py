"""Makes the table of bulk jobs, in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0002_rate_limits'),
    ]

    operations = [
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('kind', models.CharField(db_collation='ascii_bin', db_column='Kind', max_length=16)),
                ('filter', models.TextField(db_collation='utf8mb4_bin', db_column='Filter')),
                ('reason', models.TextField(db_collation='utf8mb4_bin', db_column='Reason')),
                ('actor', models.CharField(db_collation='utf8mb4_bin', db_column='Actor', max_length=150)),
                ('retarget', models.BooleanField(db_column='Retarget', default=False)),
                ('rate', models.IntegerField(db_column='Rate')),
                ('state', models.CharField(db_collation='ascii_bin', db_column='State', max_length=16)),
                ('step', models.BigIntegerField(db_column='Step', default=0)),
                ('after_time', models.DateTimeField(db_column='AfterTime', null=True)),
                ('after_id', models.BigIntegerField(db_column='AfterId', default=0)),
                ('total', models.IntegerField(db_column='Total', default=0)),
                ('done', models.IntegerField(db_column='Done', default=0)),
                ('refused', models.IntegerField(db_column='Refused', default=0)),
                ('deferred', models.IntegerField(db_column='Deferred', default=0)),
                ('skipped', models.IntegerField(db_column='Skipped', default=0)),
                ('stepped_at', models.DateTimeField(db_column='SteppedAt', null=True)),
                ('next_step_at', models.DateTimeField(db_column='NextStepAt', null=True)),
                ('created_date', models.DateTimeField(db_column='CreatedDate')),
                ('fixed_at', models.DateTimeField(db_column='FixedAt', null=True)),
                ('finished_at', models.DateTimeField(db_column='FinishedAt', null=True)),
            ],
            options={
                'db_table': '_System_ConnectorJob',
                'constraints': [models.UniqueConstraint(fields=('next_step_at', 'id'), name='ux_job_due'), models.UniqueConstraint(fields=('finished_at', 'id'), name='ux_job_finished')],
            },
        ),
    ]
