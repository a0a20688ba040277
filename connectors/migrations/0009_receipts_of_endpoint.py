"""The newest receipts of an endpoint, for its page: the unique key of deliveries knows no order."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('connectors', '0008_configuration_rights'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='receipt',
            index=models.Index(fields=['endpoint_id', 'id'], name='ix_receipt_endpoint'),
        ),
    ]
