"""URLs of the ingress."""

from django.urls import include, path

from connectors.ingress.view import ingress

urlpatterns = [
    path("ingress/<str:namespace>/<str:slug>", ingress, name="ingress"),
    path("", include("connectors.demo.urls")),
]
