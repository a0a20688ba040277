"""Length of a kept body, so that no sum has to read it. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0022_sender_of_unverified'),
    ]

    operations = [
        migrations.AddField(
            model_name='unverifieddelivery',
            name='body_bytes',
            field=models.BigIntegerField(db_column='BodyBytes', db_default=0),
        ),
    ]
