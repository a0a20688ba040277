"""When a destination last let an item through: what it refuses meanwhile is that item's own failure. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0015_workers_lost_over_an_item'),
    ]

    operations = [
        migrations.AddField(
            model_name='destination',
            name='succeeded_at',
            field=models.DateTimeField(db_column='SucceededAt', null=True),
        ),
    ]
