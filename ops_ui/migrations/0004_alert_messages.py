"""Makes the table of what is told of alerts (`ops_ui/monitoring/alert_messages.py`), in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0003_alerts'),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertMessage',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('channel', models.CharField(db_column='Channel', max_length=16)),
                ('message_id', models.CharField(db_column='MessageId', max_length=64)),
                ('subject', models.CharField(db_column='Subject', max_length=512)),
                ('body', models.TextField(db_column='Body')),
                ('attempts', models.IntegerField(db_column='Attempts', default=0)),
                ('next_try_at', models.DateTimeField(db_column='NextTryAt', null=True)),
                ('sent_at', models.DateTimeField(db_column='SentAt', null=True)),
                ('last_error', models.TextField(db_column='LastError', null=True)),
                ('created_at', models.DateTimeField(db_column='CreatedAt')),
            ],
            options={
                'db_table': 'headrace_alert_message',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('next_try_at', 'id'), name='ux_alert_message_due'), models.UniqueConstraint(fields=('created_at', 'id'), name='ux_alert_message_created')],
            },
        ),
    ]
