"""The projection app: durable events and executable work."""

from django.apps import AppConfig


class ProjectionConfig(AppConfig):
    name = "projection"
    verbose_name = "Work"
    default_auto_field = "django.db.models.BigAutoField"
