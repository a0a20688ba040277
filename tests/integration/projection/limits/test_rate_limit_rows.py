"""What is not limited, or not taken, costs no statement and locks no limit's row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from projection.database.clock import now
from projection.limits import rate_limits
from projection.limits.rate_limits import Bucket

pytestmark = pytest.mark.usefixtures("database")


def test_a_limit_that_this_process_has_not_declared_is_not_locked(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert rate_limits.lock(["never declared"]) == {}


@pytest.mark.parametrize("counts", [[], [0]])
def test_a_limit_of_which_nothing_was_taken_does_not_move(counts: list[int], django_assert_num_queries: Any) -> None:
    moment = now()
    bucket = Bucket(1, 10, timedelta(seconds=1), moment, moment, 0.0)
    with django_assert_num_queries(0):
        rate_limits.take(dict.fromkeys([bucket] * len(counts), 0))
