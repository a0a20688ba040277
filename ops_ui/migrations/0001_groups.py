"""Makes the three groups of the console: viewer, operator, administrator."""

from django.db import migrations

CONSOLE_MODELS = {
    "projection": ["event", "workitem", "workfailure", "lanehold", "worker", "projectionprotocol"],
    "connectors": [
        "namespace", "pack", "endpoint", "route", "connection", "receipt", "unverifieddelivery", "record", "auditentry",
    ],
}
OPERATOR = {
    "replay_workitem": "Can replay dead work",
    "cancel_workitem": "Can cancel waiting work",
    "discard_workitem": "Can discard dead work",
    "hold_lane": "Can hold and release lanes",
}
CONFIGURED_MODELS = ["pack", "endpoint", "route", "connection"]


def _permission(apps, app_label, model, codename, name):
    """The permission's row: migrations run before Django makes permissions, which then finds it there."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label=app_label, model=model)
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": name}
    )
    return permission


def make_groups(apps, schema_editor):
    group = apps.get_model("auth", "Group").objects
    view = [
        _permission(apps, app_label, model, f"view_{model}", f"Can view {model}")
        for app_label, models in CONSOLE_MODELS.items()
        for model in models
    ]
    operate = [_permission(apps, "projection", "workitem", code, name) for code, name in OPERATOR.items()]
    administer = [
        _permission(apps, "connectors", model, f"{verb}_{model}", f"Can {verb} {model}")
        for model in CONFIGURED_MODELS
        for verb in ("add", "change")
    ] + [
        _permission(apps, "auth", model, f"{verb}_{model}", f"Can {verb} {model}")
        for model in ("user", "group")
        for verb in ("add", "change", "delete", "view")
    ]
    for name, permissions in (
        ("viewer", view),
        ("operator", view + operate),
        ("administrator", view + operate + administer),
    ):
        group.get_or_create(name=name)[0].permissions.add(*permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("projection", "0001_initial"),
        ("connectors", "0001_initial"),
    ]

    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
