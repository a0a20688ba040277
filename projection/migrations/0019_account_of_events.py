"""Whose record an event is about. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0018_frames_of_a_failure'),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='account',
            field=models.CharField(db_collation='utf8mb4_bin', db_column='Account', db_default='', max_length=190),
        ),
    ]
