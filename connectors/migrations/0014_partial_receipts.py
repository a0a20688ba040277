"""Receipts of which an item was rejected, or conflicts with an earlier delivery, say so in their state."""

from django.db import migrations, models

FORWARDS = (
    "UPDATE `_System_ConnectorReceipt` SET State = CASE WHEN EventCount = 0 AND DuplicateCount = 0 AND ConflictCount = 0 "
    "THEN 'rejected' ELSE 'partial' END WHERE State = 'routed' AND (RejectedCount > 0 OR ConflictCount > 0)"
)
BACKWARDS = "UPDATE `_System_ConnectorReceipt` SET State = 'routed' WHERE State = 'partial' OR (State = 'rejected' AND RejectedCount > 0)"


def forwards(apps, schema_editor):
    schema_editor.connection.cursor().execute(FORWARDS)


def backwards(apps, schema_editor):
    schema_editor.connection.cursor().execute(BACKWARDS)


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0013_reading_of_receipts'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='receipt',
                    name='state',
                    field=models.CharField(choices=[('pending', 'pending'), ('routed', 'routed'), ('partial', 'partial'), ('rejected', 'rejected'), ('quarantined', 'quarantined'), ('conflict', 'conflict')], db_collation='ascii_bin', db_column='State', max_length=16),
                ),
            ],
        ),
        migrations.RunPython(forwards, backwards),
    ]
