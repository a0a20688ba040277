"""Makes the table of alerts (`ops_ui/monitoring/alerts.py`), in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0002_login_failures'),
    ]

    operations = [
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('name', models.CharField(db_column='Name', max_length=32, primary_key=True, serialize=False)),
                ('raised', models.BooleanField(db_column='Raised', default=False)),
                ('step', models.BigIntegerField(db_column='Step', default=0)),
                ('changed_at', models.DateTimeField(db_column='ChangedAt')),
                ('clear_since', models.DateTimeField(db_column='ClearSince', null=True)),
                ('code', models.CharField(db_column='Code', default='', max_length=64)),
                ('reason', models.TextField(db_column='Reason', default='')),
            ],
            options={
                'db_table': 'headrace_alert',
                'default_permissions': (),
            },
        ),
    ]
