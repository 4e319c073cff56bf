"""Work of a thread that must outlive its failures."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, connection

logger = logging.getLogger(__name__)


@contextmanager
def log_failures(undone: str, failure: str) -> Iterator[None]:
    """Log what goes wrong, and close the connection of the thread.

    `undone` and `failure` are what the log says without a database, and of any other
    error.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        logger.warning("%s, database not available: %s", undone, error)
    except Exception:  # runs matter more: the worker continues
        logger.exception(failure)
    finally:
        connection.close()
