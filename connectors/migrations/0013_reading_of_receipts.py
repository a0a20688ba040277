"""What each receipt was last read by, so that a resend is read again after the pack or its settings changed."""

from django.db import migrations

import projection.columns


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0012_audit_by_target'),
    ]

    operations = [
        migrations.AddField(
            model_name='receipt',
            name='reading_key',
            field=projection.columns.key('ReadingKey', max_length=64, null=True),
        ),
    ]
