from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projection', '0010_limit_concurrency_index'),
    ]

    operations = [
        migrations.CreateModel(
            name='RunPlace',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('limit_key', models.CharField(db_collation='ascii_bin', db_column='LimitKey', max_length=64)),
                ('number', models.IntegerField(db_column='Number')),
                ('work_item_id', models.BigIntegerField(db_column='WorkItemId', null=True)),
                ('lease_token', models.CharField(db_collation='ascii_bin', db_column='LeaseToken', max_length=36, null=True)),
            ],
            options={
                'db_table': '_System_ConnectorRunPlace',
                'constraints': [models.UniqueConstraint(fields=('limit_key', 'number'), name='ux_place_number')],
            },
        ),
    ]
