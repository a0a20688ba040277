"""Gives the console's groups the rights over jobs, pauses, lanes, waits, receipts and destinations: each action has its own."""

from django.db import migrations

SEEN = {"projection": ["job", "jobitem", "destination", "ratebucket"]}
OPERATOR = {
    ("projection", "workitem"): {
        "retry_workitem": "Can end the wait of work that waits to retry",
        "release_lane": "Can release held lanes",
    },
    ("projection", "job"): {
        "pause_job": "Can pause bulk jobs",
        "resume_job": "Can resume bulk jobs",
        "cancel_job": "Can cancel bulk jobs",
        "throttle_job": "Can change the rate of bulk jobs",
    },
    ("projection", "destination"): {"try_destination": "Can let a parked destination be tried at once"},
    ("connectors", "receipt"): {"reroute_receipt": "Can give quarantined receipts back to the router"},
    ("connectors", "namespace"): {
        "pause_namespace": "Can pause namespaces",
        "resume_namespace": "Can resume paused namespaces",
    },
    ("connectors", "pack"): {"pause_pack": "Can pause packs", "resume_pack": "Can resume paused packs"},
    ("connectors", "route"): {"pause_route": "Can pause routes", "resume_route": "Can resume paused routes"},
}


def _permission(apps, app_label, model, codename, name):
    """The permission's row: migrations run before Django makes permissions, which then finds it there."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label=app_label, model=model)
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": name}
    )
    return permission


def give_rights(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects
    seen = [
        _permission(apps, app_label, model, f"view_{model}", f"Can view {model}")
        for app_label, models in SEEN.items()
        for model in models
    ]
    done = [
        _permission(apps, app_label, model, codename, name)
        for (app_label, model), rights in OPERATOR.items()
        for codename, name in rights.items()
    ]
    for name, permissions in (("viewer", seen), ("operator", seen + done), ("administrator", seen + done)):
        for group in groups.filter(name=name):  # one that was removed stays so
            group.permissions.add(*permissions)
    # To hold lanes was to release them too.
    release = next(one for one in done if one.codename == "release_lane")
    for group in groups.filter(permissions__codename="hold_lane").distinct():
        group.permissions.add(release)
    for user in apps.get_model("auth", "User").objects.filter(user_permissions__codename="hold_lane").distinct():
        user.user_permissions.add(release)
    apps.get_model("auth", "Permission").objects.filter(codename="hold_lane").update(name="Can hold lanes")


class Migration(migrations.Migration):
    dependencies = [
        ("ops_ui", "0005_signature_failures"),
        ("projection", "0008_console_rights"),
        ("connectors", "0007_console_rights"),
    ]

    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
