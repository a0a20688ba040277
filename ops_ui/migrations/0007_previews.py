"""Makes the table of previews (`ops_ui/console/jobs/bulk_previews.py`), in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0006_rights_of_operators'),
    ]

    operations = [
        migrations.CreateModel(
            name='Preview',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('kind', models.CharField(db_collation='ascii_bin', db_column='Kind', max_length=16)),
                ('filter', models.TextField(db_collation='utf8mb4_bin', db_column='Filter')),
                ('retarget', models.BooleanField(db_column='Retarget', default=False)),
                ('actor', models.CharField(db_collation='utf8mb4_bin', db_column='Actor', max_length=150)),
                ('made_at', models.DateTimeField(db_column='MadeAt')),
                ('job_id', models.BigIntegerField(db_column='JobId', null=True)),
            ],
            options={
                'db_table': 'headrace_preview',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('made_at', 'id'), name='ux_preview_made')],
            },
        ),
    ]
