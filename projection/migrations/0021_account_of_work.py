"""Whose record a work item is about, for lists and filters. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0020_parts_of_lanes'),
    ]

    operations = [
        migrations.AddField(
            model_name='workitem',
            name='account',
            field=models.CharField(db_collation='utf8mb4_bin', db_column='Account', db_default='', max_length=190),
        ),
    ]
