"""Whose record a live record is. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0016_account_of_receipts'),
    ]

    operations = [
        migrations.AddField(
            model_name='record',
            name='account',
            field=models.CharField(db_collation='utf8mb4_bin', db_column='Account', db_default='', max_length=190),
        ),
    ]
