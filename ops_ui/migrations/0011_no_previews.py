"""Removes the table of previews: a preview is a bulk job that nobody has confirmed yet. One statement."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0010_right_to_reveal'),
    ]

    operations = [
        migrations.DeleteModel(name='Preview'),
    ]
