"""The console's login is throttled by counts in the database: what is refused, what is not, for how long, and who ends it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.http import HttpResponse
from django.test import Client

from connectors.models import AuditEntry
from ops_ui.console.login.logins import LIMITS, WINDOW_SECONDS, TooManyFailures, begin_attempt, forgive, in_words
from ops_ui.models import LoginFailures
from projection.database import clock
from tests.support import commands, console_world

pytestmark = pytest.mark.usefixtures("database")

HERE, ELSEWHERE = "198.51.100.7", "203.0.113.9"
RIGHT, WRONG = console_world.PASSWORD, "a guess"


@pytest.fixture(autouse=True)
def people(database: None, settings: Any) -> None:
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher"
    ]  # Django's own takes a quarter of a second on purpose
    console_world.user("operator")
    console_world.user("viewer")


def log_in(name: str, password: str, *, address: str = HERE) -> HttpResponse:
    client = Client(REMOTE_ADDR=address)
    return client.post("/admin/login/?next=/admin/", {"username": name, "password": password})


def fail(times: int, *, name: str = "operator", address: str = HERE) -> None:
    for _ in range(times):
        assert log_in(name, WRONG, address=address).status_code == 200


def let_time_pass(seconds: float) -> None:
    LoginFailures.objects.update(expires_at=F("expires_at") - timedelta(seconds=seconds))


def test_the_right_password_is_refused_after_too_many_wrong_ones() -> None:
    fail(LIMITS["both"])
    refused = log_in("operator", RIGHT)
    assert refused.status_code == 429
    assert "sessionid" not in refused.cookies
    text = refused.content.decode()
    assert "Too many failed attempts. Wait 15 minutes, then try again" in text
    assert "script/manage logins unlock" in text
    assert WINDOW_SECONDS - 60 < int(refused["Retry-After"]) <= WINDOW_SECONDS


def test_one_failure_less_locks_nobody_out() -> None:
    fail(LIMITS["both"] - 1)
    assert log_in("operator", RIGHT).status_code == 302


def test_a_right_password_forgets_the_failures_before_it() -> None:
    for _ in range(3):
        fail(LIMITS["both"] - 1)
        assert log_in("operator", RIGHT).status_code == 302


def test_other_people_and_other_addresses_are_let_in() -> None:
    fail(LIMITS["both"])
    assert log_in("operator", RIGHT).status_code == 429
    assert log_in("viewer", RIGHT).status_code == 302
    assert log_in("operator", RIGHT, address=ELSEWHERE).status_code == 302


def test_a_name_that_nobody_has_is_refused_alike() -> None:
    fail(LIMITS["both"], name="nobody-at-all")
    assert log_in("nobody-at-all", WRONG).status_code == 429


def test_a_name_in_another_spelling_is_the_same_name() -> None:
    fail(LIMITS["both"])
    is_found = log_in("OPERATOR", RIGHT, address=ELSEWHERE).status_code == 302
    assert (log_in("OPERATOR", RIGHT).status_code == 429) is is_found, "whatever the database takes for the name counts as the name"


def test_the_wait_ends_with_the_window_and_refusals_do_not_prolong_it() -> None:
    fail(LIMITS["both"])
    let_time_pass(WINDOW_SECONDS - 30)
    for _ in range(3):
        refused = log_in("operator", RIGHT)
        assert refused.status_code == 429
        assert int(refused["Retry-After"]) <= 30
    let_time_pass(30)
    assert log_in("operator", RIGHT).status_code == 302


def test_after_the_window_the_count_starts_anew() -> None:
    fail(LIMITS["both"])
    let_time_pass(WINDOW_SECONDS)
    fail(LIMITS["both"])
    assert log_in("operator", RIGHT).status_code == 429


def test_one_address_that_tries_many_names_is_refused_with_the_next() -> None:
    for number in range(LIMITS["address"]):
        begin_attempt(f"name-{number}", HERE)
    assert log_in("operator", RIGHT).status_code == 429
    assert log_in("operator", RIGHT, address=ELSEWHERE).status_code == 302


def test_refusals_of_one_name_do_not_use_up_the_address() -> None:
    fail(LIMITS["both"])
    for _ in range(LIMITS["address"]):
        with pytest.raises(TooManyFailures):
            begin_attempt("operator", HERE)
    assert log_in("viewer", RIGHT).status_code == 302


def test_many_addresses_that_try_one_name_are_refused_together() -> None:
    for number in range(LIMITS["name"]):
        begin_attempt("operator", f"192.0.2.{number}")
    assert log_in("operator", RIGHT, address=ELSEWHERE).status_code == 429
    assert log_in("viewer", RIGHT, address=ELSEWHERE).status_code == 302


def test_a_client_cannot_escape_by_naming_another_address() -> None:
    for number in range(LIMITS["both"]):
        client = Client(REMOTE_ADDR=HERE, HTTP_X_FORWARDED_FOR=f"192.0.2.{number}")
        client.post("/admin/login/", {"username": "operator", "password": WRONG})
    assert log_in("operator", RIGHT).status_code == 429


def test_behind_the_proxy_each_client_has_its_own_count() -> None:
    def behind_proxy(forwarded: str, password: str) -> int:
        client = Client(REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_FOR=forwarded)
        return client.post("/admin/login/", {"username": "operator", "password": password}).status_code

    for number in range(LIMITS["both"]):
        behind_proxy(f"192.0.2.{number}, {HERE}", WRONG)
    assert behind_proxy(HERE, RIGHT) == 429
    assert behind_proxy(ELSEWHERE, RIGHT) == 302


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(12) as made:
        yield made


def test_guesses_at_the_same_moment_do_not_slip_past_the_limit(crowd: ThreadPoolExecutor) -> None:
    start = Barrier(12)

    def guess(_: int) -> bool:
        start.wait(30)
        try:
            begin_attempt("operator", HERE)
        except TooManyFailures:
            return False
        else:
            return True
        finally:
            connection.close()

    assert sum(crowd.map(guess, range(12))) == LIMITS["both"]


def test_two_logins_of_one_person_at_once_leave_no_failure() -> None:
    begin_attempt("operator", HERE)
    begin_attempt("operator", HERE)
    forgive("operator", HERE)
    forgive("operator", HERE)
    assert set(LoginFailures.objects.values_list("failures", flat=True)) == {0}


def test_counts_whose_time_is_over_are_removed() -> None:
    begin_attempt("operator", HERE)
    let_time_pass(WINDOW_SECONDS)
    begin_attempt("viewer", ELSEWHERE)
    assert set(LoginFailures.objects.values_list("username", flat=True)) == {"", "viewer"}
    assert not LoginFailures.objects.filter(expires_at__lte=clock.now()).exists()


@pytest.mark.parametrize(("arguments", "count"), [(["operator"], 2), (["--address", HERE], 2), (["--all"], 3)])
def test_an_operator_of_the_server_ends_the_wait(arguments: list[str], count: int) -> None:
    fail(LIMITS["both"])
    assert log_in("operator", RIGHT).status_code == 429
    code, answer = commands.run("logins", "unlock", *arguments, "--reason", "forgot it")
    assert (code, answer["unlocked"]) == (0, count)
    assert log_in("operator", RIGHT).status_code == 302
    (entry,) = AuditEntry.objects.filter(action="login.unlock")
    assert entry.reason == "forgot it"


def test_unlocking_whoever_is_not_counted_is_not_found() -> None:
    code, answer = commands.run("logins", "unlock", "operator")
    assert (code, answer["unlocked"], answer["refused"][0]["code"]) == (1, 0, "not_found")


@pytest.mark.parametrize("arguments", [[], ["operator", "--all"], ["operator", "--address", HERE]])
def test_unlock_needs_one_answer_to_whom(arguments: list[str]) -> None:
    code, answer = commands.run("logins", "unlock", *arguments)
    assert (code, answer["error"]["code"]) == (2, "usage")


def test_the_list_shows_who_is_locked_first() -> None:
    fail(1, name="viewer", address=ELSEWHERE)
    fail(LIMITS["both"])
    code, answer = commands.run("logins", "list")
    assert code == 0
    first, *others = answer["logins"]
    assert (first["username"], first["address"], first["failures"], first["locked"]) == ("operator", HERE, LIMITS["both"], True)
    assert not any(one["locked"] for one in others)
    assert commands.say("logins", "list")[1].splitlines()[1].split()[:4] == ["operator", HERE, str(LIMITS["both"]), "yes"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(1, "1 second"), (59, "59 seconds"), (60, "1 minute"), (61, "2 minutes"), (900, "15 minutes")]
)
def test_a_wait_in_words(seconds: int, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", "/\\evil.example", ""])
def test_whoever_comes_with_an_address_that_is_not_ours_gets_to_the_overview(target: str) -> None:
    console_world.user("viewer", name="ada")
    client = Client()
    given = {"username": "ada", "password": console_world.PASSWORD, "next": target}
    response = client.post("/admin/login/", given)
    assert (response.status_code, response.headers.get("Location")) == (302, "/admin/")
    assert client.get("/admin/").status_code == 200
