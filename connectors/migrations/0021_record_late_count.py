"""How many facts of a record were admitted after younger ones."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0020_record_newest_received'),
    ]

    operations = [
        migrations.AddField(
            model_name='record',
            name='late_count',
            field=models.BigIntegerField(db_column='LateCount', db_default=0),
        ),
    ]
