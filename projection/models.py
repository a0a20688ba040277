"""Tables of the projection: facts, executable work, its failures, holds, workers and the protocol checkpoint.

Column names are the canonical schema's (`activation.py` checks them). Reads for pages use these models; whatever locks or is
set-based is a named statement in the folder of its step, sent by a manager method of the same name or by the one module that needs it.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from projection import columns
from projection.job_models import Job, JobItem  # noqa: F401 - Django finds them through this module
from projection.managers import EventManager, WorkItemManager
from projection.states import ExecutionClass, State

SOURCE_ID_LENGTH = 512
"""Characters of a readable source id; a longer one makes its item unreadable (it would be cut, and flows need it whole)."""


class Event(models.Model):
    """One immutable fact taken from a receipt, for one route (RouteId NULL: unrouted).

    The columns from ExecutorOwner to TerminalAt are the legacy lifecycle: written at insert, moved by the ownership fence and old binaries.
    """

    id = models.BigAutoField(primary_key=True, db_column="Id")
    namespace = columns.name("Namespace", 64)
    pack_id = models.BigIntegerField(db_column="PackId")
    pack_incarnation = columns.key("PackIncarnation", max_length=36)
    receipt_id = models.BigIntegerField(db_column="ReceiptId")
    receipt_item = models.IntegerField(db_column="ReceiptItem")
    route_id = models.BigIntegerField(db_column="RouteId", null=True)
    route_version = models.IntegerField(db_column="RouteVersion", null=True)
    route_snapshot = columns.text("RouteSnapshot", null=True)
    event_kind = columns.name("EventKind")
    provider_kind = columns.name("ProviderKind")
    account = columns.name("Account", db_default="")
    """Whose record it is at the provider; empty where the provider's ids are unique by themselves."""
    source_type = columns.name("SourceType")
    source_id = columns.name("SourceId", SOURCE_ID_LENGTH)
    source_key = columns.key("SourceKey", max_length=64)
    source_lane = columns.name("SourceLane", 700)
    lane_cuts = columns.code("LaneCuts", 64, db_default="")
    """Where the parts of the lane end in its readable text (`facts.SourceLane`)."""
    target_mutation_lane = columns.name("TargetMutationLane", 700, default="")
    delivery_id = columns.name("DeliveryId", 255)
    delivery_key = columns.key("DeliveryKey", max_length=64, unique=True)
    delivery_sequence = models.IntegerField(db_column="DeliverySequence")
    enqueue_ordinal = models.BigIntegerField(db_column="EnqueueOrdinal")
    routed_from_event_id = models.BigIntegerField(db_column="RoutedFromEventId", null=True)
    provider_timestamp = models.DateTimeField(db_column="ProviderTimestamp", null=True)
    payload = columns.text("Payload")
    payload_sha256 = columns.key("PayloadSha256", max_length=64)
    projection_key = columns.key("ProjectionKey", null=True)
    replay_of_event_id = models.BigIntegerField(db_column="ReplayOfEventId", null=True)
    executor_owner = columns.code("ExecutorOwner", 16)
    status = columns.code("Status", 16)
    attempts = models.IntegerField(db_column="Attempts", default=0)
    next_attempt_at = models.DateTimeField(db_column="NextAttemptAt", null=True)
    lease_token = columns.key("LeaseToken", max_length=36, null=True)
    lease_expires_at = models.DateTimeField(db_column="LeaseExpiresAt", null=True)
    last_error = columns.text("LastError", null=True)
    terminal_at = models.DateTimeField(db_column="TerminalAt", null=True)
    created_date = models.DateTimeField(db_column="CreatedDate")
    erasure_id = models.BigIntegerField(db_column="ErasureId", null=True)
    """The audit entry of its erasure; NULL: never erased. A tombstone keeps ids, keys, order and hashes."""

    objects = EventManager["Event"]()

    class Meta:
        db_table = "_System_ConnectorEvent"
        indexes = [
            models.Index(fields=["projection_key", "enqueue_ordinal", "id"], name="ix_event_range"),
            models.Index(fields=["projection_key", "next_attempt_at"], name="ix_event_burst"),
            models.Index(fields=["namespace", "enqueue_ordinal"], name="ix_event_ordinal"),
            models.Index(fields=["receipt_id"], name="ix_event_receipt"),
            models.Index(fields=["source_id"], name="ix_event_source"),
            models.Index(fields=["delivery_id"], name="ix_event_delivery"),
        ]
        permissions = [("reveal_payload", "Can see masked fields of payloads")]

    def __str__(self) -> str:
        return f"event {self.id}: {self.event_kind} {self.source_type}:{self.source_id}"


class WorkItem(models.Model):
    """An executable intent: a generation of a projection, or one event of a per-event route. `states.py` says who moves it."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    work_id = columns.key("WorkId", unique=True)
    projection_key = columns.key("ProjectionKey", null=True)
    projection_active_key = columns.key("ProjectionActiveKey", null=True, unique=True)
    replay_of_work_id = columns.key("ReplayOfWorkId", null=True, unique=True)
    event_id = models.BigIntegerField(db_column="EventId")
    namespace = columns.name("Namespace", 64)
    pack_id = models.BigIntegerField(db_column="PackId")
    route_id = models.BigIntegerField(db_column="RouteId")
    route_version = models.IntegerField(db_column="RouteVersion")
    companion_pack = columns.name("CompanionPack", 100)
    companion_flow = columns.name("CompanionFlow", 100)
    work_type = columns.name("WorkType", 100)
    execution_class = columns.code("ExecutionClass", 16, choices=[(c.value, c.value) for c in ExecutionClass])
    source_scope_key = columns.key("SourceScopeKey", max_length=64)
    account = columns.name("Account", db_default="")
    source_lane = columns.name("SourceLane", 700)
    lane_key = columns.key("LaneKey", max_length=64, null=True)
    lane_holder_key = columns.key("LaneHolderKey", max_length=64, null=True, unique=True)
    lane_position = models.BigIntegerField(db_column="LanePosition")
    lane_ordinal = models.BigIntegerField(db_column="LaneOrdinal")
    event_created_date = models.DateTimeField(db_column="EventCreatedDate")
    delivery_sequence = models.IntegerField(db_column="DeliverySequence")
    queue_class = columns.code("QueueClass", 32)
    state = columns.code("State", 16, choices=[(s.value, s.value) for s in State])
    run_after = models.DateTimeField(db_column="RunAfter")
    attempts = models.IntegerField(db_column="Attempts", default=0)
    max_attempts = models.IntegerField(db_column="MaxAttempts")
    lease_owner = columns.name("LeaseOwner", 190, null=True)
    lease_token = columns.key("LeaseToken", max_length=36, null=True)
    lease_expires_at = models.DateTimeField(db_column="LeaseExpiresAt", null=True)
    started_at = models.DateTimeField(db_column="StartedAt", null=True)
    """When its flow began, or was about to, under the newest lease; NULL: it has not started under it."""
    workers_lost = models.SmallIntegerField(db_column="WorkersLost", default=0, db_default=0)
    """0: no suspicion · 1: a worker was lost while it ran beside others · above: so many minus one were lost over it alone. While it is not
    0 the item runs apart (`claiming/rescue.py`)."""
    claimed_at = models.DateTimeField(db_column="ClaimedAt", null=True)
    """The newest claim. NULL: never claimed, so its selection may still advance."""
    first_claimed_at = models.DateTimeField(db_column="FirstClaimedAt", null=True)
    """Where GiveUpAfter counts from: settling and waiting in a lane use nothing of it up."""
    terminal_at = models.DateTimeField(db_column="TerminalAt", null=True)
    discarded_at = models.DateTimeField(db_column="DiscardedAt", null=True)
    discarded_by = columns.name("DiscardedBy", 150, null=True)
    discard_reason = columns.text("DiscardReason", null=True)
    last_error = columns.text("LastError", null=True)
    error_fingerprint = columns.key("ErrorFingerprint", max_length=64, null=True)
    created_date = models.DateTimeField(db_column="CreatedDate")

    objects = WorkItemManager["WorkItem"]()

    class Meta:
        db_table = "_System_ConnectorWorkItem"
        constraints = [
            models.CheckConstraint(
                name="ck_work_terminal",
                condition=models.Q(state__in=["processed", "skipped", "dead", "cancelled"], terminal_at__isnull=False)
                | models.Q(state__in=["pending", "blocked", "processing", "retry"], terminal_at__isnull=True),
            ),
        ]
        indexes = [
            models.Index(
                fields=["projection_key", "lane_ordinal", "event_id", "work_id", "replay_of_work_id"], name="ix_work_coverage"
            ),
            models.Index(fields=["projection_key", "state", "projection_active_key"], name="ix_work_current"),
            models.Index(fields=["lane_key", "state", "lane_position", "id"], name="ix_work_lane"),
            models.Index(fields=["state", "queue_class", "run_after", "id"], name="ix_work_claim"),
            models.Index(fields=["source_scope_key", "state"], name="ix_work_scope"),
            models.Index(fields=["event_id"], name="ix_work_event"),
            models.Index(fields=["source_lane"], name="ix_work_source"),
            models.Index(fields=["state", "terminal_at", "id"], name="ix_work_terminal"),
        ]
        permissions = [
            ("replay_workitem", "Can replay dead work"),
            ("cancel_workitem", "Can cancel waiting work"),
            ("discard_workitem", "Can discard dead work"),
            ("retry_workitem", "Can end the wait of work that waits to retry"),
            ("hold_lane", "Can hold lanes"),
            ("release_lane", "Can release held lanes"),
        ]

    def __str__(self) -> str:
        return str(self.work_id)


class WorkFailure(models.Model):
    """One failed attempt of a work item, or several in a row that used no attempt (`deferred`)."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    work_item_id = models.BigIntegerField(db_column="WorkItemId")
    work_id = columns.key("WorkId")
    attempt = models.IntegerField(db_column="Attempt")
    outcome = columns.code("Outcome", 16)
    """`retry`, `dead`, `deferred`, `timeout` or `rescued`: what became of the item by this failure."""
    error = columns.text("Error")
    error_fingerprint = columns.key("ErrorFingerprint", max_length=64)
    delay_ms = models.BigIntegerField(db_column="DelayMs", null=True)
    lease_owner = columns.name("LeaseOwner", 190, null=True)
    created_date = models.DateTimeField(db_column="CreatedDate")
    """Of the newest of them."""
    frames = columns.text("Frames", null=True)
    """Where in the flow's code it failed: files, lines and source, no values."""
    times = models.IntegerField(db_column="Times", default=1, db_default=1)
    """How many they were; error and delay are the newest's."""

    class Meta:
        db_table = "_System_ConnectorWorkFailure"
        constraints = [models.UniqueConstraint(fields=["work_item_id", "attempt", "id"], name="ux_failure_attempt")]
        indexes = [
            models.Index(fields=["error_fingerprint", "created_date"], name="ix_failure_fingerprint"),
            models.Index(fields=["created_date"], name="ix_failure_created"),
        ]

    def __str__(self) -> str:
        return f"{self.work_id} attempt {self.attempt}: {self.outcome}"


class LaneHolds(models.Manager["LaneHold"]):
    """The holds that are not over."""

    def get_queryset(self) -> models.QuerySet[LaneHold]:
        return super().get_queryset().filter(models.Q(release_at=None) | models.Q(release_at__gt=Now()))


class LaneHold(models.Model):
    """An operator's hold of one lane: nothing of it is claimed until it is released, or its time is over."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    namespace = columns.name("Namespace", 64)
    lane_key = columns.key("LaneKey", max_length=64, unique=True)
    lane = columns.name("Lane", 700)
    reason = columns.text("Reason")
    held_by = columns.name("HeldBy", 150)
    held_at = models.DateTimeField(db_column="HeldAt")
    release_at = models.DateTimeField(db_column="ReleaseAt", null=True)
    """When the hold ends by itself; NULL: somebody must release the lane."""

    objects = LaneHolds()

    class Meta:
        db_table = "_System_ConnectorLaneHold"

    def __str__(self) -> str:
        return f"hold of {self.lane}"


class Worker(models.Model):
    """Heartbeat of one router or claim-worker process."""

    id = columns.key("Id", max_length=36, primary_key=True)
    kind = columns.code("Kind", 16)
    host = columns.name("Host", 190)
    pid = models.IntegerField(db_column="Pid")
    code_version = columns.name("CodeVersion", 64)
    flows_hash = columns.key("FlowsHash", max_length=64)
    started_at = models.DateTimeField(db_column="StartedAt")
    seen_at = models.DateTimeField(db_column="SeenAt")

    class Meta:
        db_table = "_System_ConnectorWorker"
        indexes = [models.Index(fields=["seen_at"], name="ix_worker_seen")]

    def __str__(self) -> str:
        return f"{self.kind} {self.host}:{self.pid}"


class RateBucket(models.Model):
    """A named rate limit and the time of its next free start, shared by all workers (`limits/rate_limits.py`)."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    limit_key = columns.key("LimitKey", max_length=64, unique=True)
    """Digest of namespace and name."""
    namespace = columns.name("Namespace", 64)
    name = columns.name("Name")
    rate = models.IntegerField(db_column="Rate")
    """Starts in each period; 0: as many as there are."""
    per_microseconds = models.BigIntegerField(db_column="PerMicroseconds")
    declared_at = models.DateTimeField(db_column="DeclaredAt")
    """When the route version was published that the rate is taken from: the newest one's holds."""
    next_slot_at = models.DateTimeField(db_column="NextSlotAt")
    concurrency = models.IntegerField(db_column="Concurrency", null=True)
    """How many run at once (`limits/concurrency.py`); NULL: any number."""

    class Meta:
        db_table = "_System_ConnectorRateLimit"
        indexes = [
            models.Index(fields=["next_slot_at"], name="ix_limit_slot"),
            models.Index(fields=["concurrency"], name="ix_limit_concurrency"),
        ]

    def __str__(self) -> str:
        return f"limit {self.name}"


class RunPlace(models.Model):
    """One place of a limit on how many run at once. It is taken while the work item in it runs under the lease that it came with."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    limit_key = columns.key("LimitKey", max_length=64)
    number = models.IntegerField(db_column="Number")
    """From 1. There are as many as the limit ever allowed."""
    work_item_id = models.BigIntegerField(db_column="WorkItemId", null=True)
    lease_token = columns.key("LeaseToken", max_length=36, null=True)

    class Meta:
        db_table = "_System_ConnectorRunPlace"
        constraints = [models.UniqueConstraint(fields=["limit_key", "number"], name="ux_place_number")]

    def __str__(self) -> str:
        return f"place {self.number} of {self.limit_key}"


class Destination(models.Model):
    """What flows call, once it has been in trouble: its breaker (`limits/circuit_breaker.py`)."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    name_key = columns.key("NameKey", max_length=64, unique=True)
    name = columns.name("Name", 255)
    state = columns.code("State", 16)
    """`closed`, `failing`, `asked` (Retry-After), `open` or `half_open`."""
    failures = models.IntegerField(db_column="Failures")
    """In a row."""
    openings = models.IntegerField(db_column="Openings")
    """In a row: the next pause doubles with each."""
    last_work_id = columns.key("LastWorkId")
    parked_at = models.DateTimeField(db_column="ParkedAt", null=True)
    parked_until = models.DateTimeField(db_column="ParkedUntil", null=True)
    last_error = columns.text("LastError")
    succeeded_at = models.DateTimeField(db_column="SucceededAt", null=True)
    """When an item got through last, while it was in trouble."""

    class Meta:
        db_table = "_System_ConnectorDestination"
        indexes = [models.Index(fields=["state", "parked_until"], name="ix_destination_state")]
        permissions = [("try_destination", "Can let a parked destination be tried at once")]

    def __str__(self) -> str:
        return f"destination {self.name}"


class ProjectionProtocol(models.Model):
    """The one checkpoint row: which protocol this database is activated for."""

    id = models.SmallIntegerField(primary_key=True, db_column="Id", default=1)
    protocol_version = models.IntegerField(db_column="ProtocolVersion")
    schema_fingerprint = columns.key("SchemaFingerprint", max_length=64)
    activated_at = models.DateTimeField(db_column="ActivatedAt")
    activated_by = columns.name("ActivatedBy", 190)

    class Meta:
        db_table = "_System_ConnectorProjectionProtocol"

    def __str__(self) -> str:
        return f"protocol {self.protocol_version}"
