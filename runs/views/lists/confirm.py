"""Ask before something is lost that no *Undo* brings back."""

from django.http import HttpResponse
from django.shortcuts import render

from runs.htmx import HtmxRequest


def is_confirmed(request: HtmxRequest) -> bool:
    return request.POST.get("sure") == "1"


def render_confirmation(
    request: HtmxRequest, *, question: str, effect: str, do: str, here: str
) -> HttpResponse:
    """Render the question; its button, named by `do`, sends the request again.

    `here` is the address that Cancel leads to.
    """
    context = {
        "question": question,
        "effect": effect,
        "do": do,
        "url": request.path,
        "here": here,
        "next": request.POST.get("next", ""),
    }
    return render(request, "lists/confirm.html", context)
