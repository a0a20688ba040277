"""Rights of the console: to change configuration, one for each action. No DDL."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0007_console_rights'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='endpoint',
            options={'permissions': [('rotate_endpoint', 'Can rotate the secrets of endpoints'), ('reverify_endpoint', 'Can admit kept deliveries that verify now'), ('try_endpoint', 'Can send test deliveries')]},
        ),
        migrations.AlterModelOptions(
            name='pack',
            options={'permissions': [('pause_pack', 'Can pause packs'), ('resume_pack', 'Can resume paused packs'), ('install_pack', 'Can install packs'), ('upgrade_pack', 'Can upgrade packs'), ('disable_pack', 'Can disable packs'), ('enable_pack', 'Can enable disabled packs'), ('remove_pack', 'Can remove packs')]},
        ),
        migrations.AlterModelOptions(
            name='route',
            options={'permissions': [('pause_route', 'Can pause routes'), ('resume_route', 'Can resume paused routes'), ('publish_route', 'Can publish routes'), ('retire_route', 'Can retire routes')]},
        ),
    ]
