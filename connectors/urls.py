"""URLs of the ingress."""

from django.urls import path

from connectors.views import ingress

urlpatterns = [path("ingress/<str:namespace>/<str:slug>", ingress, name="ingress")]
