"""Who paused a route, why and until when; one DDL statement."""

from django.db import migrations, models

ALTER = """
ALTER TABLE `_System_ConnectorRoute`
  ADD COLUMN `PausedBy` varchar(150) COLLATE utf8mb4_bin NULL,
  ADD COLUMN `PauseReason` longtext COLLATE utf8mb4_bin NULL,
  ADD COLUMN `ResumeAt` datetime(6) NULL,
  ADD INDEX `ix_route_paused` (`PausedAt`)
"""
UNDO = """
ALTER TABLE `_System_ConnectorRoute`
  DROP INDEX `ix_route_paused`, DROP COLUMN `PausedBy`, DROP COLUMN `PauseReason`, DROP COLUMN `ResumeAt`
"""


class Migration(migrations.Migration):
    dependencies = [("connectors", "0005_pause_of_packs")]

    operations = [
        migrations.RunSQL(
            ALTER,
            UNDO,
            state_operations=[
                migrations.AddField(
                    model_name="route",
                    name="paused_by",
                    field=models.CharField(blank=True, db_collation="utf8mb4_bin", db_column="PausedBy", max_length=150, null=True),
                ),
                migrations.AddField(
                    model_name="route",
                    name="pause_reason",
                    field=models.TextField(blank=True, db_collation="utf8mb4_bin", db_column="PauseReason", null=True),
                ),
                migrations.AddField(
                    model_name="route",
                    name="resume_at",
                    field=models.DateTimeField(blank=True, db_column="ResumeAt", null=True),
                ),
                migrations.AddIndex(model_name="route", index=models.Index(fields=["paused_at"], name="ix_route_paused")),
            ],
        ),
    ]
