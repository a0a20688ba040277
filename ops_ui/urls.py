"""URLs of the service."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from ops_ui.monitoring.health import healthz, progressz, readyz
from ops_ui.monitoring.metrics import metrics

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("progressz", progressz, name="progressz"),
    path("metrics", metrics, name="metrics"),
    path("", include("connectors.urls")),
    path("admin/", admin.site.urls),
]

handler500 = "ops_ui.console.failures.failed"
