"""Rights of the console: to pause, resume and re-route. No DDL."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0006_pause_of_routes'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='namespace',
            options={'permissions': [('pause_namespace', 'Can pause namespaces'), ('resume_namespace', 'Can resume paused namespaces')]},
        ),
        migrations.AlterModelOptions(
            name='pack',
            options={'permissions': [('pause_pack', 'Can pause packs'), ('resume_pack', 'Can resume paused packs')]},
        ),
        migrations.AlterModelOptions(
            name='receipt',
            options={'permissions': [('reroute_receipt', 'Can give quarantined receipts back to the router')]},
        ),
        migrations.AlterModelOptions(
            name='route',
            options={'permissions': [('pause_route', 'Can pause routes'), ('resume_route', 'Can resume paused routes')]},
        ),
    ]
