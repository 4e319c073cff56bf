"""Which limit a run waits for, in one line."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import Run
from runs.services.runs.limit_wait import LimitWait


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
