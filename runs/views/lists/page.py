"""The page of a list whose rows can be selected."""

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class ListWords(NamedTuple):
    title: Promise
    create: Promise
    search: Promise
    icon: str = "plus"


LIST_WORDS = {
    "dataset": ListWords(_("Datasets"), _("New dataset"), _("Search datasets")),
    "evaluator": ListWords(_("Evaluators"), _("New evaluator"), _("Search evaluators")),
    "experiment": ListWords(
        _("Experiments"), _("New experiment"), _("Search experiments"), "play"
    ),
    "hook": ListWords(
        _("Incoming webhooks"),
        _("New incoming webhook"),
        _("Search incoming webhooks"),
    ),
    "prompt": ListWords(_("Prompts"), _("New prompt"), _("Search prompts")),
    "provider": ListWords(_("Providers"), _("New provider"), _("Search providers")),
    "queue": ListWords(_("Annotation queues"), _("New queue"), _("Search queues")),
    "rule": ListWords(_("Scoring rules"), _("New rule"), _("Search rules")),
    "webhook": ListWords(_("Webhooks"), _("New webhook"), _("Search webhooks")),
}


def render_list(request: HttpRequest, noun: str, **context: Any) -> HttpResponse:
    """Show the `rows` found for `q`; lists with an archive say `away` too."""
    more = {
        "noun": noun,
        "words": LIST_WORDS[noun],
        "create_url": reverse(f"{noun}-create"),
        "selection_url": reverse(f"{noun}-selection"),
    }
    return render(request, f"{noun}s/list.html", context | more)
