"""The cluster's own processes: what they say when they end."""

from __future__ import annotations

import json

import pytest
from django.db import InterfaceError, OperationalError

from projection.runtime.django_q.cluster import in_one_line


def monitor(error: Exception | None) -> None:
    if error is not None:
        raise error


@pytest.mark.parametrize("error", [OperationalError(2013, "Lost connection"), InterfaceError(0, "closed")])
def test_a_process_that_ends_with_its_database_says_so_in_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    in_one_line(monitor, error)
    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"], said["reason"]) == ("queue", "warning", "the monitor ends, and starts again")
    assert str(error.args[0]) in said["error"]


def test_any_other_fault_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    in_one_line(monitor, None)
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="a bug"):
        in_one_line(monitor, ValueError("a bug"))
