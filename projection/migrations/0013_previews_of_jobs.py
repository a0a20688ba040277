"""What the members of a bulk job would come to, counted before it is confirmed. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0012_right_to_reveal'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='expected',
            field=models.TextField(db_collation='utf8mb4_bin', db_column='Expected', null=True),
        ),
    ]
