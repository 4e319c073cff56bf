"""Run all checks of `manage.py doctor`, in the order in which problems follow."""

import logging
from collections.abc import Callable, Iterator

from runs.services.doctor.finding import Finding
from runs.services.doctor.machine import (
    check_data_folder,
    check_disk,
    check_private_files,
    check_sandbox,
    check_settings,
)
from runs.services.doctor.servers import (
    check_clock,
    check_connections,
    check_database_server,
    check_redis,
)
from runs.services.doctor.work import (
    check_providers,
    check_restore,
    check_stored_secrets,
    check_sweep,
    check_workers,
)

Check = Callable[[], Iterator[Finding]]

ALONE: tuple[Check, ...] = (
    *(check_settings, check_private_files, check_data_folder, check_disk),
    *(check_sandbox, check_redis),
)
NEED_DATABASE: tuple[Check, ...] = (
    *(check_connections, check_clock, check_restore, check_workers, check_sweep),
    *(check_stored_secrets, check_providers),
)

logger = logging.getLogger(__name__)


def examine_site() -> Iterator[Finding]:
    """Yield every finding; skip what needs a database if that cannot be used."""
    for check in ALONE:
        yield from _run_check(check)
    about_database = list(_run_check(check_database_server))
    yield from about_database
    if all(one.status == "ok" for one in about_database):
        for check in NEED_DATABASE:
            yield from _run_check(check)


def _run_check(check: Check) -> Iterator[Finding]:
    """Yield the findings; a check that fails itself is one."""
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        yield from check()
    except Exception as error:  # the other checks must still run
        logger.debug("the check %s failed", name, exc_info=True)
        kind = type(error).__name__
        yield Finding(name, "error", f"This could not be checked: {kind}: {error}")
