"""Tables of bulk jobs: what an operator asked for as a whole, and what became of each item (docs/protocol.md#bulk-jobs)."""

from __future__ import annotations

from django.db import models

from projection import columns


class Job(models.Model):
    """One bulk replay or discard. `job_rows.JobState` says who moves it on."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    kind = columns.code("Kind", 16)
    filter = columns.text("Filter")
    """JSON object: what it selects, with absolute times; `connectors` reads it."""
    reason = columns.text("Reason")
    actor = columns.name("Actor", 150)
    retarget = models.BooleanField(db_column="Retarget", default=False)
    rate = models.IntegerField(db_column="Rate")
    """Items acted on in a second, at most; 0 = as fast as it goes."""
    state = columns.code("State", 16)
    step = models.BigIntegerField(db_column="Step", default=0)
    """Counts steps: each is taken by compare-and-swap on it."""
    after_time = models.DateTimeField(db_column="AfterTime", null=True)
    """With AfterId: (TerminalAt, Id) of the last dead item that its membership was asked of."""
    after_id = models.BigIntegerField(db_column="AfterId", default=0)
    total = models.IntegerField(db_column="Total", default=0)
    done = models.IntegerField(db_column="Done", default=0)
    refused = models.IntegerField(db_column="Refused", default=0)
    deferred = models.IntegerField(db_column="Deferred", default=0)
    skipped = models.IntegerField(db_column="Skipped", default=0)
    expected = columns.text("Expected", null=True)
    """JSON object (`job_rows.Expected`); NULL: no member was looked for yet."""
    stepped_at = models.DateTimeField(db_column="SteppedAt", null=True)
    next_step_at = models.DateTimeField(db_column="NextStepAt", null=True)
    """NULL: nothing is to be done (not confirmed, paused, or ended)."""
    created_date = models.DateTimeField(db_column="CreatedDate")
    fixed_at = models.DateTimeField(db_column="FixedAt", null=True)
    """When its membership was complete; NULL: it is still being fixed, or was cancelled before."""
    finished_at = models.DateTimeField(db_column="FinishedAt", null=True)

    objects = models.Manager["Job"]()

    class Meta:
        db_table = "_System_ConnectorJob"
        constraints = [  # the second columns make them unique: such an index is made with its table, in one statement
            models.UniqueConstraint(fields=["next_step_at", "id"], name="ux_job_due"),
            models.UniqueConstraint(fields=["finished_at", "id"], name="ux_job_finished"),
        ]
        permissions = [
            ("pause_job", "Can pause bulk jobs"),
            ("resume_job", "Can resume bulk jobs"),
            ("cancel_job", "Can cancel bulk jobs"),
            ("throttle_job", "Can change the rate of bulk jobs"),
        ]

    def __str__(self) -> str:
        return f"job {self.id}"


class JobItem(models.Model):
    """One dead item of a job and its result. `job_rows.ItemState` says who moves it on."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    job_id = models.BigIntegerField(db_column="JobId")
    place = models.BigIntegerField(db_column="Place")
    """LanePosition of the dead item: jobs go by (Place, WorkItemId), which is lane order in every lane."""
    work_item_id = models.BigIntegerField(db_column="WorkItemId")
    work_id = columns.key("WorkId")
    namespace = columns.name("Namespace", 64)
    scope_key = columns.key("ScopeKey", max_length=64, null=True)
    """Source scope that its replay must have to itself; NULL for per-event items."""
    state = columns.code("State", 16)
    code = columns.code("Code", 32, default="")
    reason = columns.text("Reason", null=True)
    replay_work_id = columns.key("ReplayWorkId", null=True, unique=True)

    objects = models.Manager["JobItem"]()

    class Meta:
        db_table = "_System_ConnectorJobItem"
        constraints = [
            models.UniqueConstraint(fields=["job_id", "work_item_id"], name="ux_job_item"),
            models.UniqueConstraint(fields=["job_id", "state", "place", "work_item_id"], name="ux_job_item_state"),
            models.UniqueConstraint(fields=["job_id", "scope_key", "state", "id"], name="ux_job_item_scope"),
        ]

    def __str__(self) -> str:
        return f"{self.work_id} of job {self.job_id}"
