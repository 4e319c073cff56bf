"""Run an installation for development: auto-reload, debug pages and `breakpoint()`.

The outer process owns the data folder and the broker. The inner one, started again by
Django's reloader at each change, serves the pages in the foreground, so that the
debugger can read from the terminal, and runs the worker beside them.
"""

import atexit
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import uvicorn
from django.utils import autoreload

from agentsite.child_processes import Child, ProcessGroup, print_line
from agentsite.supervise import (
    Installation,
    build_valkey,
    build_worker,
    prepare_database,
    read_installation,
    run_alone,
)


def main() -> int:
    """Start everything, or only what is reloaded; return the exit code."""
    if os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true":
        autoreload.run_with_reloader(serve, read_installation())
        return 0
    os.umask(0o077)
    os.environ.setdefault("DEBUG", "1")
    return run_alone(run_development, ProcessGroup())


def run_development(place: Installation, group: ProcessGroup) -> int:
    """Start the broker, prepare the database, and serve until Ctrl-C."""
    logs = make_log_folder(place)
    if not (os.environ.get("REDIS_URL") or os.environ.get("REDIS_URL_FILE")):
        group.add(build_valkey(place, logs))
    login_link = prepare_database(group)
    print_line(f"Agentsite is starting at {place.url} and reloads at every change.")
    print_line(login_link)
    print_line("Stop with Ctrl-C.")
    try:
        autoreload.run_with_reloader(serve, place)  # ends by SystemExit
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 0
    return 0


def serve(place: Installation) -> None:
    """Serve pages in this process, with a worker beside it."""
    logging.getLogger("django.utils.autoreload").setLevel(logging.INFO)
    start_dev_worker(place)
    uvicorn.run(
        "agentsite.asgi:application",
        host=place.host,
        port=place.port,
        log_level="warning",
        timeout_graceful_shutdown=1,
    )


def start_dev_worker(place: Installation) -> None:
    """Start a worker that ends before this process reloads or exits."""
    worker = build_worker(place, make_log_folder(place))
    worker.parent_death_signal = signal.SIGTERM
    worker.start()
    atexit.register(stop_worker, worker)

    def stop_before_reload(file_path: Path, **_: Any) -> None:
        if file_path.suffix == ".py":  # a template needs no new process
            stop_worker(worker)

    autoreload.file_changed.connect(stop_before_reload, weak=False)


def stop_worker(worker: Child) -> None:
    """End the worker; runs that it executes continue in the next one."""
    worker.send(signal.SIGTERM)
    if worker.process is not None:
        worker.process.wait()


def make_log_folder(place: Installation) -> Path:
    logs = place.data / "log"
    logs.mkdir(mode=0o700, exist_ok=True)
    return logs


if __name__ == "__main__":
    sys.exit(main())
