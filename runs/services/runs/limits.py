"""The limits of a run: those of its spec, changed by its resumes."""

from collections.abc import Iterable

from runs.engine.types import ExecutorOptions
from runs.models import Resume, Run
from runs.store.specs import load_executor_options


def get_current_limits(run: Run) -> ExecutorOptions:
    """Return the limits in effect: the spec's, changed by the resumes."""
    return apply_resume_limits(run, Resume.objects.filter(run=run))


def apply_resume_limits(run: Run, resumes: Iterable[Resume]) -> ExecutorOptions:
    """Return the limits in effect after the resumes."""
    options = load_executor_options(run.spec.body).model_dump()
    for resume in resumes:
        options.update(resume.limits)
    return ExecutorOptions.model_validate(options)
