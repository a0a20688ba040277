"""When the flow of a claimed item began: a lost worker's attempts count only for what had started. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0013_previews_of_jobs'),
    ]

    operations = [
        migrations.AddField(
            model_name='workitem',
            name='started_at',
            field=models.DateTimeField(db_column='StartedAt', null=True),
        ),
    ]
