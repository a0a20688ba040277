from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0008_console_rights'),
    ]

    operations = [
        migrations.AddField(
            model_name='ratebucket',
            name='concurrency',
            field=models.IntegerField(db_column='Concurrency', null=True),
        ),
    ]
