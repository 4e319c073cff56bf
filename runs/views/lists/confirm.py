"""Ask before something is lost that no *Undo* brings back."""

from collections.abc import Sequence

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise

from runs.htmx import HtmxRequest


def is_confirmed(request: HtmxRequest) -> bool:
    return request.POST.get("sure") == "1"


def render_confirmation(
    request: HtmxRequest,
    *,
    question: str,
    effect: str | Promise,
    do: str,
    here: str,
    url: str = "",
    rows: Sequence[tuple[int, str]] = (),
) -> HttpResponse:
    """Render the question; its button, named by `do`, sends the request again.

    `here` is the address that Cancel leads to, and `url` that of the button, by default
    the one of the request. `rows` are keys and names of what is lost.
    """
    context = {
        "question": question,
        "effect": effect,
        "do": do,
        "rows": rows,
        "url": url or request.path,
        "here": here,
        "next": request.POST.get("next", ""),
    }
    return render(request, "lists/confirm.html", context)
