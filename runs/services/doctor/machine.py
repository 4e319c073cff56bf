"""Checks of settings, files, disks and the sandbox, without database and Redis."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import Tags, run_checks
from django.http.request import validate_host

from runs.services.doctor.finding import Finding
from tools.sandbox.cpython_probe import find_sandbox_flaw

SECRET_FILES = ("secret_key", "encryption_keys")
PRIVATE_FILES = ("db.sqlite3", "db.sqlite3-wal", "log")
"""Of these the mode matters only if others can enter the folder."""
LITTLE_SPACE, NO_SPACE = 1_000_000_000, 100_000_000


def check_settings() -> Iterator[Finding]:
    """Report settings that are unsafe, or that refuse every request."""
    found = list(_find_wrong_settings())
    yield from found
    if not found:
        address = settings.PUBLIC_URL
        yield Finding("settings", "ok", f"The settings fit the address {address}.")


def _find_wrong_settings() -> Iterator[Finding]:
    if settings.DEBUG:
        yield Finding(
            "settings",
            "warning" if settings.IS_LOCAL else "error",
            "DEBUG is on: error pages show code and settings.",
            "Unset DEBUG.",
        )
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if not validate_host(host, settings.ALLOWED_HOSTS):
        yield Finding(
            "settings",
            "error",
            f"Requests for {host} are refused.",
            f"Add it to the variable ALLOWED_HOSTS: ALLOWED_HOSTS={host}",
        )
    if not settings.IS_LOCAL and not settings.IS_HTTPS:
        yield Finding(
            "settings",
            "warning",
            f"The address {settings.PUBLIC_URL} is not encrypted.",
            "Use HTTPS, and set AGENTSITE_URL to an address with https://.",
        )
    for one in run_checks(tags=[Tags.security], include_deployment_checks=True):
        if str(one.id).startswith("agentsite.") and not settings.IS_LOCAL:
            yield Finding("settings", "warning", one.msg, one.hint or "")


def check_private_files() -> Iterator[Finding]:
    """Report secrets and data that other users of the machine can read."""
    folder = Path(settings.DATA_DIR)
    open_paths = [folder / name for name in SECRET_FILES if _is_open(folder / name)]
    if _is_open(folder):
        inside = [folder / name for name in PRIVATE_FILES if _is_open(folder / name)]
        open_paths += [folder, *inside] if inside else []
    for path in open_paths:
        right = "u=rwx,go=" if path.is_dir() else "u=rw,go="
        yield Finding(
            "files",
            "error",
            f"Other users of this machine can access {path}.",
            f"chmod {right} {path}",
        )
    if not open_paths:
        yield Finding("files", "ok", f"Only this user can access {folder}.")


def _is_open(path: Path) -> bool:
    """Whether group or others may do anything with it."""
    return path.exists() and bool(path.stat().st_mode & 0o077)


def check_data_folder() -> Iterator[Finding]:
    """Report a data folder in which this user cannot create files."""
    folder = Path(settings.DATA_DIR)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        yield Finding(
            "data",
            "error",
            f"The data folder {folder} cannot be written ({error.strerror}).",
            "Make it writable, or set AGENTSITE_DATA to another folder.",
        )
        return
    yield Finding("data", "ok", f"This user can write to {folder}.")


def check_disk() -> Iterator[Finding]:
    """Report a disk that is nearly full where data and logs are."""
    folder = Path(settings.DATA_DIR)
    free = shutil.disk_usage(folder).free
    size = f"{free / 1e9:,.1f} GB are free in {folder}"
    if free >= LITTLE_SPACE:
        yield Finding("disk", "ok", f"{size}.")
        return
    yield Finding(
        "disk",
        "error" if free < NO_SPACE else "warning",
        f"Only {size}.",
        "Free disk space, or move the folder: AGENTSITE_DATA.",
    )


def check_sandbox() -> Iterator[Finding]:
    """Report a sandbox that does not hold, if Python tools may use it."""
    if not settings.CPYTHON:
        yield Finding("sandbox", "ok", "CPython in bubblewrap is not enabled.")
    elif flaw := find_sandbox_flaw():
        yield Finding(
            "sandbox",
            "error",
            flaw,
            "Install bubblewrap and allow user namespaces, or unset AGENTSITE_CPYTHON.",
        )
    else:
        yield Finding("sandbox", "ok", "Bubblewrap isolates CPython.")
