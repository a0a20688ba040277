"""The Django project package and the operations console."""

from django.apps import AppConfig


class OpsUiConfig(AppConfig):
    name = "ops_ui"
    verbose_name = "Headrace"
