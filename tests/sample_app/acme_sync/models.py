"""What the flows keep, in Headrace's own database."""

from django.db import models


class Order(models.Model):
    """Written by the atomic flow."""

    number = models.CharField(max_length=64, unique=True)
    total = models.CharField(max_length=64)
    folded = models.IntegerField(default=0)

    def __str__(self):
        return self.number


class Notice(models.Model):
    """Written by the plain flow, once for each WorkId however often it runs."""

    work_id = models.CharField(max_length=68, unique=True)
    text = models.TextField()

    def __str__(self):
        return self.text


class Stock(models.Model):
    """Written in the atomic tail of a flow that called the network first."""

    number = models.CharField(max_length=64, unique=True)
    answer = models.TextField()
    commits = models.IntegerField(default=0)

    def __str__(self):
        return self.number


class Batch(models.Model):
    """One row for each call of the batch flow."""

    orders = models.TextField()
    inputs = models.IntegerField()

    def __str__(self):
        return self.orders
