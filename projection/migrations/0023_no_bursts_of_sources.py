"""The index of bursts by source, which no statement forces. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0022_bursts_of_projections'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='event',
            name='ix_event_settle',
        ),
    ]
