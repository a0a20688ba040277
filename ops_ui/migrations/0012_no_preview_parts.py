"""Removes the table of the parts of previews. One statement."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0011_no_previews'),
    ]

    operations = [
        migrations.DeleteModel(name='PreviewPart'),
    ]
