"""Makes the table of the parts of previews, in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0007_previews'),
    ]

    operations = [
        migrations.CreateModel(
            name='PreviewPart',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('preview_id', models.BigIntegerField(db_column='PreviewId')),
                ('place', models.IntegerField(db_column='Place')),
                ('counts', models.TextField(db_collation='utf8mb4_bin', db_column='Counts')),
                ('looked_at', models.IntegerField(db_column='LookedAt')),
                ('after_time', models.DateTimeField(db_column='AfterTime', null=True)),
                ('after_id', models.BigIntegerField(db_column='AfterId', null=True)),
                ('taken', models.BinaryField(db_column='Taken')),
            ],
            options={
                'db_table': 'headrace_preview_part',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('preview_id', 'place'), name='ux_preview_part')],
            },
        ),
    ]
