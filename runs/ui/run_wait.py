"""What a run waits for, in one line."""

from datetime import datetime

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import Run
from runs.services.providers.run_wait import RunWait
from runs.services.runs.limit_wait import LimitWait
from runs.ui.format import lasting


def describe_run_wait(wait: RunWait, now: datetime) -> str:
    """Return which provider the run waits for, with the time until the next attempt."""
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


def describe_limit_wait(wait: LimitWait) -> str:
    """Return what the run waits for; the limit is full, or the run would continue."""
    if wait.most is None:
        return _("The limit was removed, the run continues soon")
    if wait.kind in (Run.Limit.REQUESTS, Run.Limit.TOKENS):
        return _describe_rate(wait.kind, wait.name, wait.most)
    text = {
        Run.Limit.USER: _("Waiting for a slot: %(name)s runs %(most)s of %(most)s"),
        Run.Limit.AGENT: _(
            "Waiting for a slot: agent %(name)s runs %(most)s of %(most)s"
        ),
        Run.Limit.PROVIDER: _(
            "Waiting for a slot: provider %(name)s runs %(most)s of %(most)s"
        ),
    }[wait.kind]
    return text % {"name": wait.name, "most": wait.most}


def _describe_rate(kind: Run.Limit, name: str, most: int) -> str:
    if kind == Run.Limit.REQUESTS:
        text = ngettext(
            "Waiting for provider %(name)s: %(count)s request per minute",
            "Waiting for provider %(name)s: %(count)s requests per minute",
            most,
        )
    else:
        text = ngettext(
            "Waiting for provider %(name)s: %(count)s token per minute",
            "Waiting for provider %(name)s: %(count)s tokens per minute",
            most,
        )
    number = number_format(most, use_l10n=True, force_grouping=True)
    return text % {"name": name, "count": number}
