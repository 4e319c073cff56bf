"""The tool mode of a run, and the run that it replays."""

from django.contrib.auth.models import User

from runs.engine.types import ToolMode
from runs.models import Run
from runs.services.errors import RecordingNotFound
from runs.store.fast_select import select_row
from runs.store.specs import load_spec


def get_tool_mode(run: Run) -> ToolMode | None:
    """Return how the calls of `run` are answered; None if they are made."""
    return load_spec(run.spec).tool_mode if run.tool_mode else None


def get_recorded_run(mode: ToolMode | None, *, by: User) -> Run | None:
    """Return the run that is replayed; raise `RecordingNotFound`."""
    if mode is None or mode.recording is None:
        return None
    run = find_visible_run(mode.recording, by=by)
    if run is None:
        raise RecordingNotFound(mode.recording)
    return run


def find_visible_run(pk: int | None, *, by: User) -> Run | None:
    run = select_row(Run, id=pk) if pk is not None else None
    return run if run is not None and is_visible(run, by) else None


def is_visible(run: Run, by: User) -> bool:
    if by.is_superuser or run.owner_id == by.pk:  # without a second query
        return True
    return Run.objects.visible_to(by).filter(pk=run.pk).exists()
