"""URLs of the service but for probes and metrics (`monitoring.probes`)."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("", include("connectors.urls")),
    path("admin/", admin.site.urls),
]

handler500 = "ops_ui.console.failures.failed"
