"""When the newest fact of a record was received."""

from django.db import migrations

import projection.columns


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0019_record_lifecycle_received'),
    ]

    operations = [
        migrations.AddField(
            model_name='record',
            name='newest_received',
            field=projection.columns.key('NewestReceived', max_length=64, null=True),
        ),
    ]
