"""Right of the console: to see what routes mask. No DDL."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0011_run_places'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='event',
            options={'permissions': [('reveal_payload', 'Can see masked fields of payloads')]},
        ),
    ]
