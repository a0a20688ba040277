"""What one actor did, in order of time."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0009_receipts_of_endpoint'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['actor', 'at'], name='ix_audit_actor'),
        ),
    ]
