"""Actions of one kind, in order of time."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0010_audit_by_actor'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['action', 'at'], name='ix_audit_action'),
        ),
    ]
