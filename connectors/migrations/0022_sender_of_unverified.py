"""The network that a kept delivery came from. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0021_record_late_count'),
    ]

    operations = [
        migrations.AddField(
            model_name='unverifieddelivery',
            name='sender',
            field=models.CharField(db_collation='ascii_bin', db_column='Sender', db_default='', max_length=64),
        ),
    ]
