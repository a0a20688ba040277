"""Gives administrators the rights over packs, endpoints and routes: each action of the configuration rooms has its own."""

from django.db import migrations

ADMINISTRATOR = {
    "endpoint": {
        "rotate_endpoint": "Can rotate the secrets of endpoints",
        "reverify_endpoint": "Can admit kept deliveries that verify now",
        "try_endpoint": "Can send test deliveries",
    },
    "pack": {
        "install_pack": "Can install packs",
        "upgrade_pack": "Can upgrade packs",
        "disable_pack": "Can disable packs",
        "enable_pack": "Can enable disabled packs",
        "remove_pack": "Can remove packs",
    },
    "route": {"publish_route": "Can publish routes", "retire_route": "Can retire routes"},
}


def _permission(apps, model, codename, name):
    """The permission's row: migrations run before Django makes permissions, which then finds it there."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label="connectors", model=model)
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": name}
    )
    return permission


def give_rights(apps, schema_editor):
    rights = [
        _permission(apps, model, codename, name) for model, names in ADMINISTRATOR.items() for codename, name in names.items()
    ]
    for group in apps.get_model("auth", "Group").objects.filter(name="administrator"):  # one that was removed stays so
        group.permissions.add(*rights)


class Migration(migrations.Migration):
    dependencies = [
        ("ops_ui", "0008_preview_parts"),
        ("connectors", "0008_configuration_rights"),
    ]

    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
