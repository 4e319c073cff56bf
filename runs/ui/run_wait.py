"""What a run waits for, in one line."""

from datetime import datetime

from django.utils.translation import gettext as _

from runs.services.providers.run_wait import RunWait
from runs.ui.format import lasting


def describe_run_wait(wait: RunWait, now: datetime) -> str:
    """Return what the run waits for, with the time until the next attempt."""
    values = {"provider": wait.name, "run": wait.tested_by}
    if wait.tested_by is not None:
        text = _("Waiting for provider %(provider)s, which run %(run)s is testing")
        return text % values
    if wait.next_attempt_at is None:
        text = _("Provider %(provider)s responds again, the run continues soon")
        return text % values
    seconds = (wait.next_attempt_at - now).total_seconds()
    if seconds < 1:
        return _("Waiting for provider %(provider)s, next attempt soon") % values
    text = _("Waiting for provider %(provider)s, next attempt in %(duration)s")
    return text % (values | {"duration": lasting(seconds)})
