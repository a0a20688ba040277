from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0009_limit_concurrency'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='ratebucket',
            index=models.Index(fields=['concurrency'], name='ix_limit_concurrency'),
        ),
    ]
