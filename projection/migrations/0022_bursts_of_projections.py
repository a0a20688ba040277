"""A burst is of one projection, as the generation that it becomes. One statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0021_account_of_work'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['projection_key', 'next_attempt_at'], name='ix_event_burst'),
        ),
    ]
