"""Whose records an endpoint receives. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0014_partial_receipts'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpoint',
            name='account',
            field=models.CharField(db_collation='utf8mb4_bin', db_column='Account', db_default='', max_length=190),
        ),
    ]
