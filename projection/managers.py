"""Managers of the projection tables (the locking statements come with their rooms)."""

from __future__ import annotations
from typing import Any
from django.db import models


class EventManager(models.Manager[Any]):
    pass


class WorkItemManager(models.Manager[Any]):
    pass
