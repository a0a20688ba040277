"""Where in the code of its flow an attempt failed. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0017_deferred_tries_in_one_row'),
    ]

    operations = [
        migrations.AddField(
            model_name='workfailure',
            name='frames',
            field=models.TextField(db_collation='utf8mb4_bin', db_column='Frames', null=True),
        ),
    ]
