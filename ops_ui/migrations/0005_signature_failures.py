"""Makes the table of failed signatures (`ops_ui/monitoring/signature_failures.py`), in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0004_alert_messages'),
    ]

    operations = [
        migrations.CreateModel(
            name='SignatureFailures',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('endpoint', models.CharField(db_column='Endpoint', max_length=190)),
                ('minute', models.DateTimeField(db_column='Minute')),
                ('failures', models.BigIntegerField(db_column='Failures')),
            ],
            options={
                'db_table': 'headrace_signature_failures',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'minute'), name='ux_signature_failures'), models.UniqueConstraint(fields=('minute', 'id'), name='ux_signature_failures_minute')],
            },
        ),
    ]
