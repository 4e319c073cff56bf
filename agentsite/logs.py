"""Logging: one line per event, as `key=value` or as JSON."""

import logging
import re
import sys
import threading
from collections.abc import Iterable
from typing import Any

import structlog

process_fields: dict[str, str] = {}
"""Fields of every line of this process: the name of the worker."""

SECRET_PATTERNS = (
    re.compile(r"(/(?:login|shared|approve)/)[\w-]+"),
    re.compile(r"(/in/)[\w-]{20,}"),  # the address of an incoming webhook
    re.compile(r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{6,}", re.IGNORECASE),
    re.compile(r"(://[^/\s:@]*:)[^/\s@]+(?=@)"),  # a password in a URL
    re.compile(
        r"([?&](?:[\w-]*(?:key|token|secret|password|signature)|code|sig)=)[^&\s'\"]+",
        re.IGNORECASE,
    ),
    re.compile(r"(\b(?:as_|sk-|whsec_))[\w+/=-]{16,}"),
)
"""What comes after the first group is a secret."""
MIN_SECRET_LENGTH = 8

_known_secrets: list[re.Pattern[str]] = []


def hide_secrets(secrets: Iterable[str]) -> None:
    """Replace these texts in every line from now on."""
    texts = sorted({text for text in secrets if len(text) >= MIN_SECRET_LENGTH})
    _known_secrets[:] = [re.compile("()" + "|".join(map(re.escape, texts)))]


def redact_text(text: str) -> str:
    """Return the text without the secrets of this site, and what looks like some."""
    for pattern in (*SECRET_PATTERNS, *_known_secrets):
        text = pattern.sub(lambda found: f"{found[1] or ''}…", text)
    return text


def redact_secrets(
    _logger: object, _method: str, fields: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Hide secrets in the event, the exception and all other fields."""
    for name, value in fields.items():
        if not name.startswith("_") and not isinstance(value, int | float | None):
            fields[name] = redact_text(str(value))
    return fields


def add_process_fields(
    _logger: object, _method: str, fields: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {**process_fields, **fields}


MAX_REFUSAL_CHARACTERS = 300


def shorten_refusal(record: logging.LogRecord) -> bool:
    """Log a request that Django refuses, such as one for a wrong host, as one sentence.

    Anyone can cause these, and a traceback would only show Django's own code.
    """
    if record.name.startswith("django.security."):
        record.msg, record.args = record.getMessage()[:MAX_REFUSAL_CHARACTERS], ()
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


SHARED_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    add_process_fields,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    redact_secrets,
]
FIRST_FIELDS = ["timestamp", "level", "logger", "event"]


def order_fields(
    _logger: object, _method: str, fields: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Put the fields of every line first."""
    first = {name: fields[name] for name in FIRST_FIELDS if name in fields}
    return {**first, **fields}


RENDERERS: dict[str, list[structlog.typing.Processor]] = {
    "text": [
        structlog.processors.LogfmtRenderer(key_order=FIRST_FIELDS, bool_as_flag=False)
    ],
    "json": [order_fields, structlog.processors.JSONRenderer()],
}


def configure_structlog() -> None:
    """Send structlog's events to the handlers of the standard library."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def log_uncaught_exceptions() -> None:
    """Log what Python would print: warnings, and the last words of a thread."""
    logging.captureWarnings(True)
    sys.excepthook = lambda kind, error, trace: logging.getLogger("uncaught").critical(
        "%s", kind.__name__, exc_info=(kind, error, trace)
    )
    threading.excepthook = _log_thread_exception


def _log_thread_exception(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and ended.exc_type is not SystemExit:
        name = ended.thread.name if ended.thread else "?"
        trace = (ended.exc_type, ended.exc_value, ended.exc_traceback)
        logging.getLogger("uncaught").critical("thread %s", name, exc_info=trace)


def logging_config(level: str, log_format: str = "text") -> dict[str, Any]:
    """Return Django's `LOGGING`: everything to stderr, as `text` or `json`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED_PROCESSORS,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *RENDERERS[log_format],
                ],
            }
        },
        "filters": {"refusals": {"()": lambda: shorten_refusal}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["refusals"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            "django.request": {"level": "ERROR"},  # a 404 is not an event of ours
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            "asyncio": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},  # a line per message
            "celery.app.trace": {"level": "WARNING"},
            "uvicorn": {"handlers": [], "level": "WARNING", "propagate": True},
            "uvicorn.access": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }
