"""The connectors app: what comes in, from whom, and where it goes."""

from django.apps import AppConfig
from django.conf import settings


class ConnectorsConfig(AppConfig):
    name = "connectors"
    verbose_name = "Ingress"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Here: packs and flows may import models, which exist only once every app is loaded.
        from connectors.registry import autodiscovery

        autodiscovery.load(settings.HEADRACE_APPS)
