"""Gives administrators the right to see what routes mask. An operator gets it by hand, where that is wanted."""

from django.db import migrations


def give_right(apps, schema_editor):
    # Migrations run before Django makes permissions, which then finds the row there.
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label="projection", model="event")
    right, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename="reveal_payload", defaults={"name": "Can see masked fields of payloads"}
    )
    for group in apps.get_model("auth", "Group").objects.filter(name="administrator"):  # one that was removed stays so
        group.permissions.add(right)


class Migration(migrations.Migration):
    dependencies = [
        ("ops_ui", "0009_rights_of_administrators"),
        ("projection", "0012_right_to_reveal"),
    ]

    operations = [migrations.RunPython(give_right, migrations.RunPython.noop)]
