"""The tool mode of a run, and the run that it replays."""

from django.contrib.auth.models import User

from runs.engine.types import ToolMode
from runs.models import Run
from runs.services.errors import NotAllowed
from runs.store.specs import load_spec
from tools.text.translatable import translatable


def get_tool_mode(run: Run) -> ToolMode | None:
    """Return how the calls of `run` are answered; None if they are made."""
    return load_spec(run.spec).tool_mode if run.tool_mode else None


def get_recorded_run(mode: ToolMode | None, *, by: User) -> Run | None:
    """Return the run that is replayed; raise `NotAllowed` if `by` may not see it."""
    if mode is None or mode.recording is None:
        return None
    run = Run.objects.visible_to(by).filter(pk=mode.recording).first()
    if run is None:
        raise NotAllowed(translatable("Run %(run)s not found.", run=mode.recording))
    return run
