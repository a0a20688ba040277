"""Django settings: everything that differs between installations comes from the environment (`environment.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ops_ui.config import environment
from ops_ui.config.alert_targets import MailServer
from ops_ui.config.database_url import bounded, database
from projection import logs
from projection.runtime.django_q.cluster_settings import cluster_settings

BASE_DIR = environment.CHECKOUT
_env: dict[str, Any] = environment.read()

STATE_DIR: Path = _env["STATE_DIR"] or BASE_DIR / ".local"
"""Folder of what this host keeps: wake-up sockets, spool, metrics files."""

_missing = [
    f"HEADRACE_{needed} is not set; start with script/server or script/manage (which create it), or set it in the environment."
    for needed in ("DATABASE_URL", "SECRET_KEY", "ENCRYPTION_KEYS")
    if not _env[needed]
] + [
    f"HEADRACE_{target} is set, and HEADRACE_{means} is not; alerts would not be delivered. Set both."
    for target, means in (("ALERT_URL", "ALERT_SECRET"), ("ALERT_MAIL", "MAIL_URL"))
    if _env[target] and not _env[means]
]
if _missing:
    raise environment.BadSetting("\n".join(_missing))

SECRET_KEY: str = _env["SECRET_KEY"]
DEBUG: bool = _env["DEBUG"]
ALLOWED_HOSTS: list[str] = _env["ALLOWED_HOSTS"]
DATABASES = {"default": database(_env["DATABASE_URL"])}
DATABASES["ingress"] = bounded(DATABASES["default"])

HEADRACE_ENCRYPTION_KEYS: list[str] = _env["ENCRYPTION_KEYS"]
HEADRACE_PUBLIC_URL: str = _env["PUBLIC_URL"]
HEADRACE_BIND: environment.Bind = _env["BIND"]
HEADRACE_APPS: list[str] = _env["APPS"]
HEADRACE_MAX_BODY_BYTES: int | None = _env["MAX_BODY_BYTES"]
HEADRACE_LEASE_SECONDS: int = _env["LEASE_SECONDS"]
HEADRACE_WORKER_BATCH: int = _env["WORKER_BATCH"]
HEADRACE_ROUTER_BATCH: int = _env["ROUTER_BATCH"]
HEADRACE_FORWARD_ALLOWED_NETWORKS: list[str] = _env["FORWARD_ALLOWED_NETWORKS"]
HEADRACE_TRUSTED_PROXIES: list[str] = _env["TRUSTED_PROXIES"]
HEADRACE_DEMO: bool = _env["DEMO"]
HEADRACE_CONFIG_LOCKED: bool = _env["CONFIG_LOCKED"]
HEADRACE_CONSOLE_READ_ONLY: bool = _env["CONSOLE_READ_ONLY"]
HEADRACE_RETENTION_DAYS: int = _env["RETENTION_DAYS"]
HEADRACE_DEAD_RETENTION_DAYS: int = _env["DEAD_RETENTION_DAYS"]
HEADRACE_AGE_LIMIT_SECONDS: int = _env["AGE_LIMIT_SECONDS"]
HEADRACE_ALERT_URL: str = _env["ALERT_URL"]
HEADRACE_ALERT_SECRET: str = _env["ALERT_SECRET"]
HEADRACE_ALERT_MAIL: list[str] = _env["ALERT_MAIL"]
HEADRACE_ALERT_DEAD_LETTERS: int = _env["ALERT_DEAD_LETTERS"]
HEADRACE_ALERT_SIGNATURE_FAILURES: int = _env["ALERT_SIGNATURE_FAILURES"]
HEADRACE_SPOOL_BYTES: int = _env["SPOOL_BYTES"]
HEADRACE_SPOOL_DIR: Path = STATE_DIR / "spool"
HEADRACE_WEB_PROCESSES: int = environment.WEB_PROCESSES
HEADRACE_WAKE_DIR: Path = environment.socket_folder(STATE_DIR) / environment.WAKE

INSTALLED_APPS = [
    "ops_ui",
    "connectors",
    "projection",
    *HEADRACE_APPS,
    "ops_ui.apps.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "django_q",
    "django_tables2",
    "django_filters",
    "django_htmx",
]

MIDDLEWARE = [
    "ops_ui.monitoring.metrics.RequestMetrics",
    "connectors.ingress.middleware.IngressFirst",
    "ops_ui.console.headers.SecurityHeaders",
    "ops_ui.monitoring.probes.ProbesFirst",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "ops_ui.console.base.read_only.ReadOnlyConsole",
    "ops_ui.console.base.time_zone.ViewerZone",
]

ROOT_URLCONF = "ops_ui.urls"
WSGI_APPLICATION = "ops_ui.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            # Named here, not found in a `templatetags` folder: they belong to the console, which is no app of its own.
            "libraries": {"console": "ops_ui.console.base.tags", "operations": "ops_ui.console.base.operation_tags"},
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

_mail: MailServer | None = _env["MAIL_URL"]
if _mail is not None:
    EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.host, _mail.port, _mail.user, _mail.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.security == "starttls", _mail.security == "tls"
    DEFAULT_FROM_EMAIL = _mail.sender
EMAIL_TIMEOUT = 10

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
STATIC_ROOT = STATE_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
# The ingress view reads its body itself, bounded by the pack's limit; Django's own limit is for the console's forms.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# Two of django-q2's migrations drop an integer primary key, which TiDB refuses; its tables are made from the models instead.
MIGRATION_MODULES = {"django_q": None}

LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"  # also after a login whose `next` is no page of ours
# Behind a TLS proxy the console never travels in the clear, and its forms may be posted under the public name. Whether a request came
# by https is what gunicorn makes of the proxy's X-Forwarded-Proto (`gunicorn_conf.py`, HEADRACE_TRUSTED_PROXIES).
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HEADRACE_PUBLIC_URL.startswith("https://")
SECURE_HSTS_SECONDS = 365 * 86_400 if SECURE_SSL_REDIRECT else 0
CSRF_COOKIE_HTTPONLY = True  # forms carry the token; no script reads it
CSRF_TRUSTED_ORIGINS = ["/".join(HEADRACE_PUBLIC_URL.split("/")[:3])] if HEADRACE_PUBLIC_URL else []
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Django's own default mails errors to nobody once DEBUG is off; ours puts them where the supervisor's output goes.
_library_level = "ERROR" if _env["LOG_LEVEL"] == "error" else "WARNING"
logs.configure(_env["LOG_LEVEL"], _env["LOG_FORMAT"])
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "projection.runtime.library_log.LibraryLine", "format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": _library_level},
    "loggers": {"django": {"handlers": [], "level": _library_level, "propagate": True}},
}

SILENCED_SYSTEM_CHECKS = [
    "models.W037",  # django-q2 has an index with a condition; without the condition it is only larger
    "security.W005",  # HSTS for all names below the public one, and
    "security.W021",  # its entry in the browsers' lists: those names belong to the domain's owner, not to this service
]

RESIDENT_BUDGET_SECONDS = 600
"""How long a resident loop runs inside one django-q2 task before it hands over to its successor."""
LONGEST_FLOW_TIMEOUT_SECONDS = 300
Q_CLUSTER = cluster_settings(RESIDENT_BUDGET_SECONDS, LONGEST_FLOW_TIMEOUT_SECONDS)
