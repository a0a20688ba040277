"""What was done to one target, in order of time."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0011_audit_by_action'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['target', 'at'], name='ix_audit_target'),
        ),
    ]
