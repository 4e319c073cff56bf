"""Logging: one line per event, as `key=value`."""

import logging
import re
from typing import Any

import structlog

_SECRET_PATH = re.compile(r"(/(?:login|shared)/)[\w-]+")


def redact_secret_paths(
    _logger: object, _method: str, fields: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Hide the secrets in paths of login links and shared runs."""
    fields["event"] = _SECRET_PATH.sub(r"\1…", str(fields.get("event", "")))
    return fields


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
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
    redact_secret_paths,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


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


def logging_config(level: str) -> dict[str, Any]:
    """Return Django's `LOGGING`: everything to stderr as `key=value`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED_PROCESSORS,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.LogfmtRenderer(
                        key_order=["timestamp", "level", "logger", "event"],
                        bool_as_flag=False,
                    ),
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
        },
    }
