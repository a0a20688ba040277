"""How many deferred tries a failure stands for: an outage that lasts made a row for each. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0016_last_success_of_a_destination'),
    ]

    operations = [
        migrations.AddField(
            model_name='workfailure',
            name='times',
            field=models.IntegerField(db_column='Times', db_default=1, default=1),
        ),
    ]
