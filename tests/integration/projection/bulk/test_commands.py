"""`dlq replay / discard --job`, large selections without it, and `jobs list / show / pause / resume / cancel / throttle / run`."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.operations import bulk_jobs
from projection.bulk.job_rows import JobKind
from projection.execution.worker import drain_claims
from projection.job_models import Job
from projection.models import WorkItem
from tests.support.commands import run, say
from tests.support.deliveries import change, generations
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import dead_letters, fixed, start

pytestmark = pytest.mark.usefixtures("sound_database")


def result_of(*arguments: str) -> dict[str, Any]:
    code, answer = run(*arguments)
    assert code == 0
    return answer


@pytest.mark.parametrize("verb", ["replay", "discard"])
def test_a_job_is_started_and_told_at_once(verb: str) -> None:
    confirmed = ("--yes",) if verb == "discard" else ()
    answer = result_of("dlq", verb, "--job", "--error", "timeout", "--reason", "fixed", "--rate", "7", *confirmed)
    job = answer["job"]
    assert {name: job[name] for name in ("kind", "state", "filter", "retarget", "rate", "reason", "total", "finished")} == {
        "kind": verb,
        "state": "running",
        "filter": {"error": "timeout"},
        "retarget": False,
        "rate": 7,
        "reason": "fixed",
        "total": 0,
        "finished": None,
    }
    assert job["actor"].startswith("cli:")
    assert Job.objects.get().id == job["id"]
    assert (
        f"started job {job['id'] + 1} ({verb}): running"
        in say("dlq", verb, "--job", "--all", "--reason", "all of it", *confirmed)[1]
    )


def test_a_job_is_never_about_everything_by_mistake() -> None:
    for arguments in (("--job",), ("--job", "evt:1", "--all"), ("--job", "--all", "--rate", "-1"), ("--job", "--pack", "nothing")):
        assert run("dlq", "replay", *arguments)[0] == 2
    assert run("dlq", "replay", "--job", "--dry-run", "--pack", "nothing")[0] == 2
    assert not Job.objects.exists()


def test_a_dry_run_of_a_job_tells_counts_and_starts_none() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 1, 2, 3)
        ingress.admit(change(2))
        answer = result_of("dlq", "replay", "--job", "--dry-run", "--all")
        assert answer == {
            "preview": {
                "kind": "replay",
                "possible": 2,
                "deferred": 1,
                "refused": {"active_generation": 1},
                "after_newer": 0,
                "total": 4,
            },
            "dry_run": True,
        }
        drain_claims()
        assert result_of("dlq", "replay", "--job", "--dry-run", "--all")["preview"]["after_newer"] == 1
        assert "warning: 1 would run after newer work" in say("dlq", "replay", "--job", "--dry-run", "--all")[1]
        assert result_of("dlq", "replay", "--dry-run", "--all")["after_newer"] == 1
        assert "warning: 1 would run after newer work" in say("dlq", "replay", "--dry-run", "--all")[1]
    assert not Job.objects.exists()


def test_named_ones_are_a_job_too_and_names_of_nothing_are_refused() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
        names = [generations(n)[0].work_id for n in (1, 2)]
        code, dry = run("dlq", "replay", "--job", "--dry-run", *names, "evt:1")
        assert (code, dry["preview"]["possible"]) == (1, 2)
        code, answer = run("dlq", "replay", "--job", *names, "evt:1")
        assert (code, answer["job"]["state"], answer["job"]["total"], answer["job"]["rate"]) == (1, "running", 2, 0)
        assert [(row["id"], row["code"]) for row in answer["refused"]] == [("evt:1", "not_found")]
        assert dry["refused"] == answer["refused"]
        assert "refused: evt:1: there is no work item evt:1" in say("dlq", "replay", "--job", *names, "evt:1")[1]
    code, answer = run("dlq", "replay", *[f"evt:{number}" for number in range(1001)])
    assert (code, "give at most 1,000" in str(answer)) == (2, True)


def test_what_would_run_after_newer_work_is_said_by_the_real_thing_too() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2)
        ingress.admit(change(1), change(2))
        drain_claims()
        one, two = (generations(n)[0].work_id for n in (1, 2))
        answer = result_of("dlq", "replay", "--job", "--source", "1")
        assert answer["preview"]["after_newer"] == 1
        bulk_jobs.run(answer["job"]["id"])
        answer = result_of("dlq", "replay", "--all")
        assert ([row["work_id"] for row in answer["replayed"]], answer["after_newer"]) == ([two], 1)
        drain_claims()
        code, said = say("dlq", "replay", one, two, "--dry-run")
        assert (code, "would run after" in said) == (1, False)
    assert not Job.objects.filter(state="preview").exists()


def test_a_single_replay_after_newer_work_says_so_too() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2, 3)
        ingress.admit(change(1), change(2))
        drain_claims()
        one, two, three = (generations(n)[0].work_id for n in (1, 2, 3))
        code, said = say("dlq", "replay", one)
        assert (code, "would run after newer work" in said) == (0, True), said
        assert result_of("dlq", "replay", two)["after_newer"] == 1
        assert result_of("dlq", "replay", three)["after_newer"] == 0


def test_a_selection_is_a_job_with_the_usual_answer() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 1, 2, 3, 4)
        ingress.admit(change(2))
        code, answer = run("dlq", "replay", "--all", "--reason", "fixed")
        assert code == 1
        assert [row["work_id"] for row in answer["replayed"]] == [generations(n)[0].work_id for n in (1, 3, 4)]
        made = dict(WorkItem.objects.exclude(replay_of_work_id=None).values_list("replay_of_work_id", "work_id"))
        assert {row["work_id"]: row["replay_work_id"] for row in answer["replayed"]} == made
        assert [(row["id"], row["code"]) for row in answer["refused"]] == [(generations(2)[0].work_id, "active_generation")]
        assert [(row["id"], row["code"]) for row in answer["deferred"]] == [(generations(1)[1].work_id, "same_source")]
        assert answer["job"] == Job.objects.get().id
        assert answer["dry_run"] is False
        drain_claims()


def test_a_discard_is_a_job_with_the_usual_answer() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        answer = result_of("dlq", "discard", "--all", "--reason", "vendor gone", "--yes")
    assert [row["work_id"] for row in answer["discarded"]] == [generations(n)[0].work_id for n in (1, 2, 3)]
    assert (answer["refused"], answer["job"]) == ([], Job.objects.get().id)
    assert WorkItem.objects.filter(discard_reason="vendor gone").count() == 3


def test_jobs_are_listed_and_shown() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2)
        ingress.admit(change(2))
        job = start()
        bulk_jobs.run(job.id)
        drain_claims()
        other = start(JobKind.DISCARD)
    answer = result_of("jobs", "list")
    assert ([row["id"] for row in answer["jobs"]], answer["truncated"]) == ([other.id, job.id], False)
    assert [row["id"] for row in result_of("jobs", "list", "--limit", "1")["jobs"]] == [other.id]
    assert run("jobs", "list", "--limit", "0")[0] == 2
    answer = result_of("jobs", "show", str(job.id))
    assert (answer["job"]["state"], answer["job"]["done"], answer["job"]["refused"]) == ("finished", 1, 1)
    replayed, refused = answer["items"]
    one, two = generations(1), generations(2)
    assert replayed == {"work_id": one[0].work_id, "state": "done", "code": "", "reason": None, "replay_work_id": one[1].work_id}
    assert (refused["work_id"], refused["state"], refused["code"]) == (two[0].work_id, "refused", "active_generation")
    assert two[1].work_id in refused["reason"]
    assert result_of("jobs", "show", str(job.id), "--state", "refused")["items"] == [refused]
    assert (
        result_of("jobs", "show", str(job.id), "--limit", "1")["items"],
        result_of("jobs", "show", str(job.id), "--limit", "1")["truncated"],
    ) == ([replayed], True)
    assert result_of("jobs", "show", str(job.id), "--limit", "0")["items"] == [replayed, refused]
    assert f"job {job.id} (replay): finished, 2 of 2 ended, 1 refused" in say("jobs", "show", str(job.id))[1]


def test_each_verb_tells_how_the_job_stands_or_why_not() -> None:
    with recording() as seen:
        dead_letters(seen, 1)
        job = str(fixed(start()).id)
        assert result_of("jobs", "pause", job, "--reason", "lunch")["job"]["state"] == "paused"
        code, answer = run("jobs", "pause", job)
        assert (code, answer["refused"]) == (1, [{"id": job, "code": "not_running", "reason": f"job {job} is paused"}])
        assert result_of("jobs", "throttle", job, "--rate", "3")["job"]["rate"] == 3
        assert run("jobs", "throttle", job, "--rate", "-3")[0] == 2
        assert result_of("jobs", "resume", job)["job"]["state"] == "running"
        assert result_of("jobs", "run", job)["job"]["state"] == "finished"
        assert run("jobs", "cancel", job)[1]["refused"][0]["code"] == "ended"
        other = str(start().id)
        assert result_of("jobs", "cancel", other)["job"]["state"] == "cancelled"
        for verb in ("show", "pause", "resume", "cancel", "run"):
            assert run("jobs", verb, "99999999")[1]["refused"][0]["code"] == "not_found"
        drain_claims()
