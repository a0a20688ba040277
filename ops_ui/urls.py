"""URLs of the service."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from ops_ui.monitoring.probes import PROBES

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    *(path(address.lstrip("/"), view, name=address.lstrip("/")) for address, view in PROBES.items()),
    path("", include("connectors.urls")),
    path("admin/", admin.site.urls),
]

handler500 = "ops_ui.console.failures.failed"
