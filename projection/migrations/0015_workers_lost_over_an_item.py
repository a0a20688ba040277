"""How many workers were lost over an item: it runs apart until it is known who kills. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0014_start_of_an_attempt'),
    ]

    operations = [
        migrations.AddField(
            model_name='workitem',
            name='workers_lost',
            field=models.SmallIntegerField(db_column='WorkersLost', db_default=0, default=0),
        ),
    ]
