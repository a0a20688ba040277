"""The connectors app: what comes in, from whom, and where it goes."""

from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    name = "connectors"
    verbose_name = "Ingress"
    default_auto_field = "django.db.models.BigAutoField"
