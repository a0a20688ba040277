"""Makes the table of the items of bulk jobs, in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0003_jobs'),
    ]

    operations = [
        migrations.CreateModel(
            name='JobItem',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('job_id', models.BigIntegerField(db_column='JobId')),
                ('place', models.BigIntegerField(db_column='Place')),
                ('work_item_id', models.BigIntegerField(db_column='WorkItemId')),
                ('work_id', models.CharField(db_collation='ascii_bin', db_column='WorkId', max_length=68)),
                ('namespace', models.CharField(db_collation='utf8mb4_bin', db_column='Namespace', max_length=64)),
                ('scope_key', models.CharField(db_collation='ascii_bin', db_column='ScopeKey', max_length=64, null=True)),
                ('state', models.CharField(db_collation='ascii_bin', db_column='State', max_length=16)),
                ('code', models.CharField(db_collation='ascii_bin', db_column='Code', default='', max_length=32)),
                ('reason', models.TextField(db_collation='utf8mb4_bin', db_column='Reason', null=True)),
                ('replay_work_id', models.CharField(db_collation='ascii_bin', db_column='ReplayWorkId', max_length=68, null=True, unique=True)),
            ],
            options={
                'db_table': '_System_ConnectorJobItem',
                'constraints': [models.UniqueConstraint(fields=('job_id', 'work_item_id'), name='ux_job_item'), models.UniqueConstraint(fields=('job_id', 'state', 'place', 'work_item_id'), name='ux_job_item_state'), models.UniqueConstraint(fields=('job_id', 'scope_key', 'state', 'id'), name='ux_job_item_scope')],
            },
        ),
    ]
