"""Previews of bulk replays and discards: made from a choice, counted part by part, confirmed once.

Each part is one request's work, whatever the choice (`bulk_preview.preview_part`); parts are kept, so that the next request goes on
wherever it is answered. A preview chooses what was dead when it was made, and so does its job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction

from connectors.operations import bulk_jobs
from connectors.operations.bulk_preview import BulkPreview, Place, beginning, preview_part
from connectors.operations.work_filters import WorkFilter, from_json, to_json
from ops_ui.preview_models import Preview, PreviewPart
from projection.bulk.job_rows import JobKind
from projection.database import clock
from projection.database.transactions import duplicate_key
from projection.replay.preview import ReplayPreview

KEPT: Final = timedelta(days=1)
"""After that nobody confirms what was counted."""
FORGOTTEN_AT_ONCE: Final = 20
HURRIED_STEPS: Final = 4
"""Steps of a job over named items that the confirming request does itself: one fixes them, the others act on 100 each."""
RECORD_BYTES: Final = 32
_ROW_MARK: Final = bytes(RECORD_BYTES - 8)
"""Begins the record of a row's id; no digest begins with so many zeros."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted so far; exact once it `is_whole`."""

    counts: BulkPreview
    looked_at: int
    parts: int
    is_whole: bool


def make(kind: JobKind, chosen: WorkFilter, *, actor: str, retarget: bool = False) -> Preview:
    """A new preview, its first part counted. Raises UnknownName."""
    _forget_old()
    now = clock.now()
    if not chosen.work:
        chosen = replace(chosen, until=min(chosen.until or now, now))
    preview = Preview.objects.create(kind=kind.value, filter=to_json(chosen), retarget=retarget, actor=actor, made_at=now)
    go_on(preview)
    return preview


def counted(preview: Preview) -> Counted:
    """The sum of its parts. One query."""
    parts = list(PreviewPart.objects.defer("taken").filter(preview_id=preview.id).order_by("place"))
    counts = BulkPreview(JobKind(preview.kind))
    for part in parts:
        counts.add(_counts(part))
    return Counted(counts, sum(part.looked_at for part in parts), len(parts), bool(parts) and parts[-1].after_time is None)


def go_on(preview: Preview) -> None:
    """Count the next part, unless all is counted. Raises UnknownName."""
    parts = list(PreviewPart.objects.filter(preview_id=preview.id).order_by("place"))
    chosen = from_json(preview.filter)
    place = _place(parts[-1]) if parts else beginning(chosen)
    if place is None:
        return
    replays = ReplayPreview(taken=dict.fromkeys(unpacked(bytes(part.taken) for part in parts), ""))
    known = len(replays.taken)
    part = preview_part(JobKind(preview.kind), chosen, place, preview.made_at, replays, retarget=preview.retarget)
    after_time, after_id = part.next or (None, None)
    try:
        PreviewPart.objects.create(
            preview_id=preview.id,
            place=len(parts),
            counts=_text(part.counts),
            looked_at=part.looked_at,
            after_time=after_time,
            after_id=after_id,
            taken=packed(list(replays.taken)[known:]),
        )
    except IntegrityError as error:
        if duplicate_key(error) is None:
            raise
        # The same page in another window has counted this part.


def confirm(preview_id: int, *, actor: str, reason: str, rate: int) -> tuple[int, bool]:
    """(its job, whether it is new): a preview has one job, however often it is confirmed. Raises Preview.DoesNotExist, UnknownName."""
    with transaction.atomic():
        preview = Preview.objects.select_for_update().get(id=preview_id)
        if preview.job_id is not None:
            return preview.job_id, False
        chosen = from_json(preview.filter)
        kind, rate = JobKind(preview.kind), 0 if chosen.work else rate
        job = bulk_jobs.start(kind, chosen, actor=actor, reason=reason, rate=rate, retarget=preview.retarget)
        Preview.objects.filter(id=preview_id).update(job_id=job.id)
    if chosen.work:
        bulk_jobs.hurry(job.id, HURRIED_STEPS)
    return job.id, True


def packed(keys: Iterable[str | int]) -> bytes:
    """Source scopes (digests) and rows as records of 32 bytes."""
    return b"".join(_ROW_MARK + key.to_bytes(8) if isinstance(key, int) else bytes.fromhex(key) for key in keys)


def unpacked(texts: Iterable[bytes]) -> list[str | int]:
    """What `packed` wrote, of several parts."""
    whole = b"".join(texts)
    records = (whole[at : at + RECORD_BYTES] for at in range(0, len(whole), RECORD_BYTES))
    return [int.from_bytes(one[-8:]) if one.startswith(_ROW_MARK) else one.hex() for one in records]


def _place(part: PreviewPart) -> Place | None:
    return None if part.after_time is None else (part.after_time, part.after_id or 0)


def _text(counts: BulkPreview) -> str:
    return json.dumps(counts.members())


def _counts(part: PreviewPart) -> BulkPreview:
    return BulkPreview.of(json.loads(part.counts))


def _forget_old() -> None:
    """Some of the previews that nobody will confirm any more, whenever somebody makes one."""
    old = Preview.objects.filter(made_at__lt=clock.now() - KEPT).order_by("made_at", "id")
    ids = list(old.values_list("id", flat=True)[:FORGOTTEN_AT_ONCE])
    if ids:
        PreviewPart.objects.filter(preview_id__in=ids).delete()
        Preview.objects.filter(id__in=ids).delete()
