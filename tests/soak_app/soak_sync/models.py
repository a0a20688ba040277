"""The account: what each flow was given, in Headrace's own database."""

from django.db import models


class Applied(models.Model):
    """One input of one execution of a flow. Nothing keeps a second row out: the soak counts them."""

    route = models.CharField(max_length=20)
    work_id = models.CharField(max_length=68)
    attempt = models.IntegerField()
    source = models.CharField(max_length=64)
    fact = models.CharField(max_length=20)
    ordinal = models.BigIntegerField()

    class Meta:
        db_table = "soak_applied"

    def __str__(self):
        return f"{self.route} {self.fact}"
