"""Passwords of the suite's users: made in no time, and checked by the service as any others."""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """One round in place of a million, which take a third of a second for each user that a test makes."""

    iterations = 1
