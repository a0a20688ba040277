"""Where the parts of a lane end in its readable text: a lane is identified by its parts. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0019_account_of_events'),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='lane_cuts',
            field=models.CharField(db_collation='ascii_bin', db_column='LaneCuts', db_default='', max_length=64),
        ),
    ]
