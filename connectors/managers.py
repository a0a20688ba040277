from __future__ import annotations
from typing import Any
from django.db import models


class ReceiptManager(models.Manager[Any]):
    pass
