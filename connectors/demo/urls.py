"""Where the demo's destinations answer."""

from django.urls import path

from connectors.demo.receiver import closed, receiver

urlpatterns = [
    path("demo/receiver", receiver, name="demo-receiver"),
    path("demo/closed", closed, name="demo-closed"),
]
