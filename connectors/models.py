"""Tables of the ingress: namespaces, packs, endpoints, routes, connections, receipts, unverified deliveries and live records."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from django.db import models

from connectors.managers import ReceiptManager
from connectors.states import EndpointState, PackState
from projection import columns
from projection.database import clock
from projection.facts import PER_EVENT, PROJECTION
from projection.states import ReceiptState


class Pausable(models.Model):
    """What may be paused: nothing of it is claimed (`pausing.py`)."""

    paused_at = models.DateTimeField(db_column="PausedAt", null=True, blank=True)
    paused_by = columns.name("PausedBy", 150, null=True, blank=True)
    pause_reason = columns.text("PauseReason", null=True, blank=True)
    resume_at = models.DateTimeField(db_column="ResumeAt", null=True, blank=True)
    """When the pause ends by itself; NULL: somebody must resume."""

    class Meta:
        abstract = True

    @property
    def is_paused(self) -> bool:
        """For people; the claim asks for itself. By the database's clock, and seldom with a statement."""
        return self.paused_at is not None and (self.resume_at is None or self.resume_at > clock.lately())


class Namespace(Pausable):
    """A tenant: the unit of admission order. Its row is the admission lock."""

    name = columns.name("Name", 64, primary_key=True)
    next_enqueue_ordinal = models.BigIntegerField(db_column="NextEnqueueOrdinal", default=1)

    class Meta:
        db_table = "_System_ConnectorNamespace"
        indexes = [models.Index(fields=["paused_at"], name="ix_namespace_paused")]
        permissions = [("pause_namespace", "Can pause namespaces"), ("resume_namespace", "Can resume paused namespaces")]

    def __str__(self) -> str:
        return str(self.name)


class Pack(Pausable):
    """One installed incarnation of a connector. An upgrade is a new row of the same name."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    namespace = columns.name("Namespace", 64)
    name = columns.name("Name", 100)
    """As it is installed: one class may be installed several times under different names."""
    class_name = columns.name("Class", 100, db_default="")
    """Of the code, as it is registered; empty: the name."""
    version = columns.name("Version", 64)
    incarnation = columns.key("Incarnation", max_length=36, unique=True)
    state = columns.code("State", 16, default=PackState.INSTALLED)
    discard_when_disabled = models.BooleanField(db_column="DiscardWhenDisabled", default=False)
    settings = columns.text("Settings", default="{}")
    """JSON object: what the pack's own configuration says (for `generic`: where to find ids)."""
    installed_at = models.DateTimeField(db_column="InstalledAt")
    removed_at = models.DateTimeField(db_column="RemovedAt", null=True, blank=True)

    class Meta:
        db_table = "_System_ConnectorPack"
        indexes = [
            models.Index(fields=["namespace", "name", "state"], name="ix_pack_name"),
            models.Index(fields=["paused_at"], name="ix_pack_paused"),
        ]
        permissions = [
            ("pause_pack", "Can pause packs"),
            ("resume_pack", "Can resume paused packs"),
            ("install_pack", "Can install packs"),
            ("upgrade_pack", "Can upgrade packs"),
            ("disable_pack", "Can disable packs"),
            ("enable_pack", "Can enable disabled packs"),
            ("remove_pack", "Can remove packs"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def code_name(self) -> str:
        """Name of its class."""
        return str(self.class_name or self.name)


class Endpoint(models.Model):
    """One ingress URL, `/ingress/<namespace>/<slug>`, of an installed pack."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    pack_id = models.BigIntegerField(db_column="PackId")
    namespace = columns.name("Namespace", 64)
    slug = columns.name("Slug", 100)
    account = columns.name("Account", db_default="")
    """Whose records its deliveries are about, where their ids are the sender's own; empty: the slug (`endpoint_facts.account_of`)."""
    signature_scheme = columns.code("SignatureScheme", 64, default="")
    """Empty: the pack's own scheme."""
    public_url = columns.name("PublicUrl", 700, default="")
    """Scheme and host (and prefix) that the provider posts to, e.g. `https://hooks.example.com`; empty = HEADRACE_PUBLIC_URL."""
    secrets = columns.text("Secrets", default="")
    """Encrypted (`connectors.secrets`): a list of {secret, expires_at}; at most two live at once."""
    unverified_policy = columns.code("UnverifiedPolicy", 16, default="keep")
    """`keep` (store apart for the window after creation and each rotation) or `refuse`."""
    unverified_until = models.DateTimeField(db_column="UnverifiedUntil", null=True, blank=True)
    unverified_not_kept = models.BigIntegerField(db_column="UnverifiedNotKept", db_default=0)
    """Deliveries with a bad signature that found no place since the last rotation; counted a few seconds late."""
    limits = columns.text("Limits", default="{}")
    """JSON object of `connectors.ingress.limit_values`."""
    state = columns.code("State", 16, default=EndpointState.ENABLED)
    discard_when_disabled = models.BooleanField(db_column="DiscardWhenDisabled", default=False)
    created_at = models.DateTimeField(db_column="CreatedAt")
    rotated_at = models.DateTimeField(db_column="RotatedAt", null=True, blank=True)

    class Meta:
        db_table = "_System_ConnectorEndpoint"
        constraints = [models.UniqueConstraint(fields=["namespace", "slug"], name="ux_endpoint_slug")]
        indexes = [models.Index(fields=["pack_id"], name="ix_endpoint_pack")]
        permissions = [
            ("rotate_endpoint", "Can rotate the secrets of endpoints"),
            ("reverify_endpoint", "Can admit kept deliveries that verify now"),
            ("try_endpoint", "Can send test deliveries"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.slug}"


class Route(Pausable):
    """One immutable version of a route. `Snapshot` is its canonical content (`RouteFacts.snapshot`)."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    pack_id = models.BigIntegerField(db_column="PackId")
    namespace = columns.name("Namespace", 64)
    pack_name = columns.name("PackName", 100)
    route_key = columns.name("RouteKey", 100)
    version = models.IntegerField(db_column="Version")
    provider_kinds = columns.text("ProviderKinds")
    """JSON array of the provider kinds that the route takes; `"*"` = every kind, `"contact.*"` = by prefix."""
    event_kind = columns.name("EventKind")
    invocation_mode = columns.code("InvocationMode", 64, choices=[(PER_EVENT, "per event"), (PROJECTION, "projection")])
    companion_pack = columns.name("CompanionPack", 100)
    companion_flow = columns.name("CompanionFlow", 100)
    work_type = columns.name("WorkType", 100)
    settle_seconds = models.FloatField(db_column="SettleSeconds", default=0)
    source_id_case = columns.code("SourceIdCase", 16, default="exact")
    target_mutation_lane = columns.name("TargetMutationLane", 255, default="")
    queue_class = columns.code("QueueClass", 32, default="default")
    retry_policy = columns.text("RetryPolicy", default="{}")
    give_up_after_seconds = models.FloatField(db_column="GiveUpAfter", null=True)
    rate_limit = columns.text("RateLimit", null=True)
    masks = columns.text("Masks", default="[]")
    connection = columns.name("Connection", 100, default="")
    snapshot = columns.text("Snapshot", default="")
    is_current = models.BooleanField(db_column="IsCurrent", default=True)
    deleted_at = models.DateTimeField(db_column="DeletedAt", null=True, blank=True)
    created_at = models.DateTimeField(db_column="CreatedAt")

    class Meta:
        db_table = "_System_ConnectorRoute"
        constraints = [models.UniqueConstraint(fields=["namespace", "route_key", "version"], name="ux_route_version")]
        indexes = [
            models.Index(fields=["pack_id", "is_current"], name="ix_route_pack"),
            models.Index(fields=["paused_at"], name="ix_route_paused"),
        ]
        permissions = [
            ("pause_route", "Can pause routes"),
            ("resume_route", "Can resume paused routes"),
            ("publish_route", "Can publish routes"),
            ("retire_route", "Can retire routes"),
        ]

    def __str__(self) -> str:
        return f"{self.route_key} v{self.version}"


class Connection(models.Model):
    """A destination that flows post to (`http_forward`): URL and signing secret."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    namespace = columns.name("Namespace", 64)
    name = columns.name("Name", 100)
    url = columns.name("Url", 2000)
    secrets = columns.text("Secrets", default="")
    settings = columns.text("Settings", default="{}")
    """JSON object: `disabled` true where an operator disabled it."""
    created_at = models.DateTimeField(db_column="CreatedAt")

    class Meta:
        db_table = "_System_ConnectorConnection"
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="ux_connection_name")]

    def __str__(self) -> str:
        return str(self.name)

    @property
    def is_disabled(self) -> bool:
        """Whether flows post nothing to it."""
        return bool(json.loads(self.settings or "{}").get("disabled"))


class Receipt(models.Model):
    """One HTTP delivery as it arrived."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    namespace = columns.name("Namespace", 64)
    pack_id = models.BigIntegerField(db_column="PackId")
    pack_incarnation = columns.key("PackIncarnation", max_length=36)
    endpoint_id = models.BigIntegerField(db_column="EndpointId")
    account = columns.name("Account", db_default="")
    """Its endpoint's, when it was received."""
    idempotency_key = columns.name("IdempotencyKey", 512, null=True)
    idempotency_hash = columns.key("IdempotencyHash", max_length=64, null=True)
    """Digest of the provider's delivery id; NULL without one, so that the unique key then admits every request."""
    conflict_hash = columns.key("ConflictHash", max_length=64, default="")
    """Empty for the first body of a delivery id; the body's digest for each other body sent under it."""
    body = models.BinaryField(db_column="Body")
    body_sha256 = columns.key("BodySha256", max_length=64)
    headers = columns.text("Headers")
    """JSON object of the allow-listed headers."""
    method = columns.code("Method", 8, default="POST")
    url = columns.text("Url", default="")
    received_at = models.DateTimeField(db_column="ReceivedAt")
    state = columns.code("State", 16, choices=[(s.value, s.value) for s in ReceiptState])
    attempts = models.IntegerField(db_column="Attempts", default=0)
    next_attempt_at = models.DateTimeField(db_column="NextAttemptAt", null=True)
    last_error = columns.text("LastError", null=True)
    routed_at = models.DateTimeField(db_column="RoutedAt", null=True)
    item_count = models.IntegerField(db_column="ItemCount", null=True)
    event_count = models.IntegerField(db_column="EventCount", null=True)
    duplicate_count = models.IntegerField(db_column="DuplicateCount", null=True)
    conflict_count = models.IntegerField(db_column="ConflictCount", null=True)
    rejected_count = models.IntegerField(db_column="RejectedCount", null=True)
    verdicts = columns.text("Verdicts", null=True)
    """JSON array of what became of items other than plain events: rejected, conflict, with item number and reason."""
    reading_key = columns.key("ReadingKey", max_length=64, null=True)
    """Digest of the pack incarnation and settings that it was last read by (`Pack.reading_key`)."""
    erasure_id = models.BigIntegerField(db_column="ErasureId", null=True)
    """The audit entry of its erasure; NULL: never erased. A tombstone keeps ids, counts and the body's hash."""

    objects = ReceiptManager()

    class Meta:
        db_table = "_System_ConnectorReceipt"
        constraints = [
            models.UniqueConstraint(fields=["endpoint_id", "idempotency_hash", "conflict_hash"], name="ux_receipt_delivery")
        ]
        indexes = [
            models.Index(fields=["state", "namespace", "received_at", "id"], name="ix_receipt_pending"),
            models.Index(fields=["idempotency_key"], name="ix_receipt_key"),
            models.Index(fields=["state", "received_at", "id"], name="ix_receipt_state"),
            models.Index(fields=["endpoint_id", "id"], name="ix_receipt_endpoint"),
        ]
        permissions = [("reroute_receipt", "Can give quarantined receipts back to the router")]

    def __str__(self) -> str:
        return f"receipt {self.id}"


class UnverifiedDelivery(models.Model):
    """A delivery whose signature did not match, held for a while: never routed, admitted only by `endpoints reverify`."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    endpoint_id = models.BigIntegerField(db_column="EndpointId")
    body = models.BinaryField(db_column="Body")
    body_sha256 = columns.key("BodySha256", max_length=64)
    headers = columns.text("Headers")
    url = columns.text("Url", default="")
    evidence = columns.text("Evidence", default="")
    """Encrypted: the whole URL and the headers that the signature check reads, so that it can be made again. Never shown."""
    reason = columns.text("Reason")
    received_at = models.DateTimeField(db_column="ReceivedAt")
    sender = columns.code("Sender", 64, db_default="")
    """The network that it came from: each has a share of what an endpoint keeps."""
    body_bytes = models.BigIntegerField(db_column="BodyBytes", db_default=0)
    admitted_receipt_id = models.BigIntegerField(db_column="AdmittedReceiptId", null=True)

    class Meta:
        db_table = "_System_ConnectorUnverified"
        indexes = [models.Index(fields=["endpoint_id", "received_at"], name="ix_unverified_endpoint")]

    def __str__(self) -> str:
        return f"unverified delivery {self.id}"


class Record(models.Model):
    """The live state of one source record, folded from its events by the `record_table` flow."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    record_key = columns.key("RecordKey", max_length=64, unique=True)
    """`identity.record_key` of what follows."""
    namespace = columns.name("Namespace", 64)
    pack_name = columns.name("PackName", 100)
    event_kind = columns.name("EventKind")
    account = columns.name("Account", db_default="")
    source_type = columns.name("SourceType")
    source_id = columns.name("SourceId", 512)
    source_lane = columns.name("SourceLane", 700, default="")
    """Lane of the newest fact, for people: a lane may be wider than a record, and is no part of its identity."""
    properties = columns.text("Properties")
    """JSON object: property → {"value": exact JSON, "ordinal": the fact that set it, "received": its place in the order of receipt}."""
    deleted = models.BooleanField(db_column="Deleted", default=False)
    lifecycle_ordinal = models.BigIntegerField(db_column="LifecycleOrdinal", default=0)
    """Ordinal of the fact that last created, deleted, restored or merged the record."""
    merged_into = columns.name("MergedInto", 512, null=True)
    event_count = models.BigIntegerField(db_column="EventCount", default=0)
    last_ordinal = models.BigIntegerField(db_column="LastOrdinal", default=0)
    lifecycle_received = columns.key("LifecycleReceived", max_length=64, null=True)
    """Place in the order of receipt (microseconds:receipt:item) of the fact of LifecycleOrdinal; NULL: from before it was kept."""
    newest_received = columns.key("NewestReceived", max_length=64, null=True)
    """Place of the newest fact of all."""
    late_count = models.BigIntegerField(db_column="LateCount", db_default=0)
    """Facts that were admitted after younger ones, and so changed only what those had not set."""
    created_at = models.DateTimeField(db_column="CreatedAt")
    updated_at = models.DateTimeField(db_column="UpdatedAt")

    class Meta:
        db_table = "_System_ConnectorRecord"
        indexes = [models.Index(fields=["source_id"], name="ix_record_source")]

    def __str__(self) -> str:
        return f"{self.source_type}:{self.source_id}"


class Upkeep(models.Model):
    """When something that the installation does by itself, once in a while, was last done (`upkeep.py`)."""

    name = columns.code("Name", 64, primary_key=True)
    started_at = models.DateTimeField(db_column="StartedAt")
    finished_at = models.DateTimeField(db_column="FinishedAt", null=True)
    """NULL: it is not through yet (it runs, or was stopped, or failed); whoever comes next goes on."""
    counts = columns.text("Counts", default="{}")
    """JSON object: what was done since StartedAt."""
    last_error = columns.text("LastError", null=True)

    class Meta:
        db_table = "_System_ConnectorUpkeep"

    def __str__(self) -> str:
        return str(self.name)


class AppendOnly(TypeError):
    """Entries of the audit trail are only added: none is changed or removed."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class AuditEntries(models.QuerySet["AuditEntry"]):
    """Reads, and what `audit_log` adds."""

    def update(self, **_values: Any) -> NoReturn:
        raise AppendOnly

    def bulk_update(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise AppendOnly

    def delete(self) -> NoReturn:
        raise AppendOnly


class AuditEntry(models.Model):
    """Append-only: who did what to what, when and why. Raises AppendOnly for anything else."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    at = models.DateTimeField(db_column="At")
    actor = columns.name("Actor", 150)
    action = columns.code("Action", 64)
    target = columns.name("Target", 255)
    reason = columns.text("Reason")
    count = models.IntegerField(db_column="Count", default=1)
    detail = columns.text("Detail", default="{}")

    objects = AuditEntries.as_manager()

    class Meta:
        db_table = "_System_ConnectorAudit"
        indexes = [
            models.Index(fields=["at"], name="ix_audit_at"),
            *(models.Index(fields=[name, "at"], name=f"ix_audit_{name}") for name in ("actor", "action", "target")),
        ]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.target}"

    def save(self, *arguments: Any, **options: Any) -> None:
        if not self._state.adding:
            raise AppendOnly
        super().save(*arguments, **options)

    def delete(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise AppendOnly
