"""The Django project package and the operations console."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps

from ops_ui.monitoring import counter_file

counter_file.use()  # this app is the first one: a user's own may count as soon as it is imported


class OpsUiConfig(AppConfig):
    name = "ops_ui"
    verbose_name = "Headrace"
    default = True

    def ready(self) -> None:
        # Here: the checks read models, which exist only once every app is loaded.
        from ops_ui.config import checks, server_checks, tls
        from ops_ui.monitoring import measures, signature_failures

        checks.register_all()
        server_checks.register_all()
        tls.register()
        measures.start()
        signature_failures.start()


class ConsoleAdminConfig(admin_apps.AdminConfig):
    """Django's admin with the console as its site (named in INSTALLED_APPS in place of `django.contrib.admin`)."""

    default = False
    default_site = "ops_ui.console.site.ConsoleSite"

    def ready(self) -> None:
        super().ready()
        from django.apps import apps
        from django.contrib import admin

        # django-q2's pages would run any task again, and unpickle in the web server what stands in its tables. Those of users and
        # groups would let an administrator become a superuser; the console has its own (`console.users`).
        models = [model for label in ("django_q", "auth") for model in apps.get_app_config(label).get_models()]
        admin.site.unregister([model for model in models if admin.site.is_registered(model)])
