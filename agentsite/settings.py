"""Django's settings; everything that differs between machines is in `agentsite.env`."""

import sys
from datetime import timedelta
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.core.management.utils import get_random_secret_key

from agentsite import env, layout, translations, watchdog
from agentsite.database import (
    WEB_POOL_SIZE,
    WORKER_POOL_SIZE,
    InvalidDatabaseUrl,
    parse_database_url,
)
from agentsite.env import is_fernet_key, read_env
from agentsite.gc_tuning import collect_rarely
from agentsite.logs import (
    configure_structlog,
    hide_secrets,
    log_uncaught_exceptions,
    logging_config,
)
from agentsite.secret_files import read_or_create_secret

collect_rarely()  # before the models and views are imported

layout.make_packages_importable()
BASE_DIR = layout.ROOT
START_COMMAND = layout.START_COMMAND
MANAGE_COMMAND = layout.MANAGE_COMMAND
ENV = read_env()

# Read by the rest of the product.

DATA_DIR = ENV.agentsite_data
EMBEDDED = not ENV.database_url
DEMO = ENV.agentsite_demo
_LOCK_FILE = DATA_DIR / "lock"
"""`make run` writes its address here, for commands that were not given one."""
_HAS_EXPLICIT_URL = bool(ENV.model_fields_set & {"port", "agentsite_url"})
PUBLIC_URL = ENV.public_url
with layout.exit_if_data_unusable(DATA_DIR):
    if not _HAS_EXPLICIT_URL and _LOCK_FILE.exists():
        PUBLIC_URL = _LOCK_FILE.read_text().strip() or PUBLIC_URL
LEASE_SECONDS = ENV.agentsite_lease_seconds
HEARTBEAT_SECONDS = LEASE_SECONDS / 3
SWEEP_SECONDS = ENV.agentsite_sweep_seconds
HANG_SECONDS = watchdog.HANG_SECONDS
APPROVAL_HOURS = ENV.agentsite_approval_hours
APPROVAL_EXPIRY = ENV.agentsite_approval_expiry
AGENT_DEPTH = ENV.agentsite_agent_depth
CHILD_RUNS = ENV.agentsite_child_runs
USER_RUNS = ENV.agentsite_user_runs
USER_CONCURRENT_RUNS = ENV.agentsite_user_concurrent_runs
USER_STREAMS = ENV.agentsite_user_streams
METRICS_TOKEN = ENV.agentsite_metrics_token
OTLP_ENDPOINT = ENV.agentsite_otlp_endpoint
OTLP_HEADERS = env.parse_header_list(ENV.agentsite_otlp_headers)
OTLP_CONTENT = ENV.agentsite_otlp_content
TRACE_IMPORT_DAILY_SPANS = ENV.agentsite_trace_import_daily_spans
WORKER_THREADS = ENV.agentsite_worker_threads
QUEUES = env.QUEUES
WORKER_QUEUES = ENV.agentsite_worker_queues or QUEUES
TOOL_MODULES = list(ENV.agentsite_tool_modules)
EXTENSIONS = list(ENV.agentsite_extensions)
KEY_VARIABLES = list(ENV.agentsite_key_variables)
OWN_PORTS = [ENV.port]
WEB_SEARCH = ENV.agentsite_web_search
WEB_SEARCH_KEY = ENV.agentsite_web_search_key
SQL_CONNECTIONS = ENV.agentsite_sql_connections
CPYTHON = ENV.agentsite_cpython
MCP_COMMANDS = ENV.agentsite_mcp_commands
IS_LOCAL = ENV.is_local
PRIVATE_HOSTS = ENV.agentsite_private_hosts
if PRIVATE_HOSTS is None:
    PRIVATE_HOSTS = "provider=127.0.0.1,::1" if IS_LOCAL else ""

# Secrets.

SECRET_KEY_IS_FILE = not ENV.secret_key
KEYS_ARE_FILES = not ENV.agentsite_encryption_keys
_KEYS_FILE = DATA_DIR / "encryption_keys"
with layout.exit_if_data_unusable(DATA_DIR):
    SECRET_KEY = ENV.secret_key or read_or_create_secret(
        DATA_DIR / "secret_key", get_random_secret_key
    )
    ENCRYPTION_KEYS = (
        list(ENV.agentsite_encryption_keys)
        or read_or_create_secret(
            _KEYS_FILE, lambda: Fernet.generate_key().decode()
        ).split()
    )
if not ENCRYPTION_KEYS or not all(map(is_fernet_key, ENCRYPTION_KEYS)):
    sys.exit(
        f"The file {_KEYS_FILE} is damaged: it contains invalid keys. "
        "Restore it from a backup."
    )

# E-mail.

_MAIL_SERVER = env.parse_email_url(ENV.agentsite_email_url)
EMAIL_IS_ON = bool(_MAIL_SERVER.host)
EMAIL_HOST, EMAIL_PORT = _MAIL_SERVER.host, _MAIL_SERVER.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _MAIL_SERVER.user, _MAIL_SERVER.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL_SERVER.starts_tls, _MAIL_SERVER.is_tls
EMAIL_TIMEOUT = 15
DEFAULT_FROM_EMAIL = ENV.agentsite_email_from or (
    f"Agentsite <agentsite@{urlsplit(PUBLIC_URL).hostname or 'localhost'}>"
)

# Web.

DEBUG = ENV.debug
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    ENV.agentsite_host,
    *ENV.allowed_hosts,
]
CSRF_TRUSTED_ORIGINS = list(ENV.csrf_trusted_origins)
IS_HTTPS = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
# A host cannot set a cookie with this prefix for another one, nor without HTTPS.
_COOKIE_PREFIX = "__Host-" if IS_HTTPS else ""
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}agentsite_{ENV.port}"  # two on one machine
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}csrftoken"
CSRF_COOKIE_HTTPONLY = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
DATA_UPLOAD_MAX_NUMBER_FIELDS = 3_000  # an OpenAPI document has up to 2,000 operations
CSRF_FAILURE_VIEW = "runs.views.error_pages.csrf_failed"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "django_htmx",
    "agentsite.apps.SiteConfig",
    "tools.apps.ToolsConfig",
    "runs.apps.RunsConfig",
]
MIDDLEWARE = [
    "agentsite.middleware.RequestLogMiddleware",
    "agentsite.middleware.TraceContext",
    "django.middleware.security.SecurityMiddleware",
    "agentsite.middleware.ContentSecurityPolicy",
    "agentsite.middleware.StaticFiles",
    "runs.views.error_pages.MethodNotAllowedPage",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "agentsite.middleware.SignInRequired",
    "runs.htmx.VaryOnHtmx",
    "runs.language.UserLanguageMiddleware",
    "runs.time_zone.ViewerTimeZoneMiddleware",
    "tools.audit.actor.AuditActorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "agentsite.middleware.UserLogMiddleware",
    "runs.views.error_pages.UnstorableValuePage",
]
ROOT_URLCONF = "agentsite.urls"
ASGI_APPLICATION = "agentsite.asgi.application"
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
                "django.template.context_processors.i18n",
                "runs.ui.context_processors.page_frame",
                "runs.ui.context_processors.shell_commands",
            ],
        },
    },
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # refuses before a password is hashed
    "django.contrib.auth.backends.ModelBackend",
]
AXES_ENABLED = ENV.agentsite_sign_in_attempts > 0
AXES_FAILURE_LIMIT = ENV.agentsite_sign_in_attempts
AXES_LOCKOUT_PARAMETERS = ["ip_address"]  # a name is not locked: anyone knows some
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_CALLABLE = "runs.views.accounts.sign_in_locked"
AXES_HANDLER = "axes.handlers.cache.AxesCacheHandler"  # strangers fill no table
AXES_CACHE = "sign-in"
AXES_VERBOSE = AXES_ENABLE_ADMIN = False
AXES_SENSITIVE_PARAMETERS: list[str] = []  # the log has the address, and no name
SILENCED_SYSTEM_CHECKS = [
    "axes.W001",  # each web process counts by itself
    "models.W040",  # SQLite has the indexes without the columns that they include
]
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "sign-in": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "sign-in",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
}
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
] + [{"NAME": "runs.services.accounts.password_changed.EndOtherAccess"}]

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True  # works without collectstatic
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MIMETYPES = {".webmanifest": "application/manifest+json"}

LANGUAGE_CODE = "en"
LANGUAGES = translations.LANGUAGES
with layout.exit_if_data_unusable(DATA_DIR):
    LOCALE_PATHS = [translations.find_compiled_catalogs(DATA_DIR)]
TRANSLATION_SOURCES = translations.SOURCE_DIR
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

# Database.

DATABASE_POOL = ENV.agentsite_database_pool
WEB_POOL = DATABASE_POOL or WEB_POOL_SIZE
WORKER_POOL = DATABASE_POOL or WORKER_POOL_SIZE
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
try:
    DATABASES = {
        "default": parse_database_url(
            ENV.database_url,
            password=ENV.database_password,
            data=DATA_DIR,
            pool=WEB_POOL,
        )
    }
except InvalidDatabaseUrl as error:
    sys.exit(str(error))

# Redis streams and the Celery broker. A private broker writes its address to a file
# if its socket is not in the data folder.

_BROKER_FILE = DATA_DIR / "broker"
REDIS_URL = ENV.redis_address or (
    _BROKER_FILE.read_text().strip()
    if _BROKER_FILE.exists()
    else f"unix://{DATA_DIR / 'valkey.sock'}"
)
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_POOL_LIMIT = 10
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A web request never waits for the broker; `agentsite.celery` allows workers more.
    "socket_timeout": 0.5,  # accept a request within a second if the broker is down
    "socket_connect_timeout": 0.5,
    "max_retries": 0,
    "max_connections": 100,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CHANNEL_ERROR_RETRY = True  # such as a Redis without free memory
CELERY_TASK_DEFAULT_QUEUE = QUEUES[0]
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {name: {} for name in QUEUES}
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_CONCURRENCY = WORKER_THREADS
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True  # a full worker leaves messages to an idle one
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False

configure_structlog()
hide_secrets(
    [
        *(SECRET_KEY, *ENCRYPTION_KEYS, METRICS_TOKEN, WEB_SEARCH_KEY),
        str(DATABASES["default"].get("PASSWORD", "")),
        urlsplit(REDIS_URL).password or "",
        *OTLP_HEADERS.values(),
        EMAIL_HOST_PASSWORD,
    ]
)
if ENV.agentsite_log_format == "json":
    log_uncaught_exceptions()
LOGGING = logging_config(ENV.agentsite_log_level, ENV.agentsite_log_format)
