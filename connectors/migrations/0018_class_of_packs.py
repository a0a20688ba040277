"""The class of a pack that is installed under another name. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0017_account_of_records'),
    ]

    operations = [
        migrations.AddField(
            model_name='pack',
            name='class_name',
            field=models.CharField(db_collation='utf8mb4_bin', db_column='Class', db_default='', max_length=100),
        ),
    ]
