"""Makes the table of failed logins (`ops_ui/console/login/logins.py`), in one statement."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ops_ui', '0001_groups'),
    ]

    operations = [
        migrations.CreateModel(
            name='LoginFailures',
            fields=[
                ('id', models.BigAutoField(db_column='Id', primary_key=True, serialize=False)),
                ('scope', models.CharField(db_column='Scope', max_length=8)),
                ('username', models.CharField(db_column='Username', max_length=150)),
                ('address', models.CharField(db_column='Address', max_length=49)),
                ('failures', models.PositiveIntegerField(db_column='Failures')),
                ('expires_at', models.DateTimeField(db_column='ExpiresAt')),
            ],
            options={
                'db_table': 'headrace_login_failures',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('scope', 'username', 'address'), name='ux_login_failures'), models.UniqueConstraint(fields=('expires_at', 'id'), name='ux_login_failures_expiry')],
            },
        ),
    ]
