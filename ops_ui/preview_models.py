"""Tables of previews: what somebody chose to replay or discard, counted part by part before it is confirmed (`bulk_previews.py`)."""

from __future__ import annotations

from django.db import models

from projection import columns


class Preview(models.Model):
    """One choice of dead letters. Nothing of it changes but its job, once, when it is confirmed."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    kind = columns.code("Kind", 16)
    filter = columns.text("Filter")
    """JSON object of a WorkFilter with absolute times; the job takes it as it is."""
    retarget = models.BooleanField(db_column="Retarget", default=False)
    actor = columns.name("Actor", 150)
    made_at = models.DateTimeField(db_column="MadeAt")
    job_id = models.BigIntegerField(db_column="JobId", null=True)

    class Meta:
        db_table = "headrace_preview"
        default_permissions = ()
        # An index that is made with the table, in one statement: a migration that was cut off can run again.
        constraints = [models.UniqueConstraint(fields=["made_at", "id"], name="ux_preview_made")]

    def __str__(self) -> str:
        return f"preview {self.id}"


class PreviewPart(models.Model):
    """One part of a preview, never changed: what it came to, and where the next one begins."""

    id = models.BigAutoField(primary_key=True, db_column="Id")
    preview_id = models.BigIntegerField(db_column="PreviewId")
    place = models.IntegerField(db_column="Place")
    counts = columns.text("Counts")
    """JSON object (`BulkPreview.members`)."""
    looked_at = models.IntegerField(db_column="LookedAt")
    after_time = models.DateTimeField(db_column="AfterTime", null=True)
    """With AfterId: where the next part begins. NULL: this is the last."""
    after_id = models.BigIntegerField(db_column="AfterId", null=True)
    taken = models.BinaryField(db_column="Taken")
    """What this part gave its first place in a source: 32 bytes each (`bulk_previews.packed`)."""

    class Meta:
        db_table = "headrace_preview_part"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["preview_id", "place"], name="ux_preview_part")]

    def __str__(self) -> str:
        return f"part {self.place} of preview {self.preview_id}"
