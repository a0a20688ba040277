"""When the fact was received that last created, deleted, restored or merged a record."""

from django.db import migrations

import projection.columns


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0018_class_of_packs'),
    ]

    operations = [
        migrations.AddField(
            model_name='record',
            name='lifecycle_received',
            field=projection.columns.key('LifecycleReceived', max_length=64, null=True),
        ),
    ]
