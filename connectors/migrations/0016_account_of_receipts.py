"""The account of its endpoint when a delivery was received. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0015_account_of_endpoints'),
    ]

    operations = [
        migrations.AddField(
            model_name='receipt',
            name='account',
            field=models.CharField(db_collation='utf8mb4_bin', db_column='Account', db_default='', max_length=190),
        ),
    ]
