"""How many deliveries with a bad signature found no place. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0023_bytes_of_unverified'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpoint',
            name='unverified_not_kept',
            field=models.BigIntegerField(db_column='UnverifiedNotKept', db_default=0),
        ),
    ]
