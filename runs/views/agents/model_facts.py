"""What is known of a model in one line: context, capabilities and prices."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.models import ProviderModel
from runs.ui.format import money, number


def describe_model(model: ProviderModel) -> str:
    """Return the known facts, such as `8,000 context · tool calls · $1 in, …`."""
    return " · ".join(iter_model_facts(model))


def iter_model_facts(model: ProviderModel) -> Iterator[str]:
    if model.context_tokens:
        yield _("%(count)s context") % {"count": number(model.context_tokens)}
    can = [
        word
        for known, word in (
            (model.functions, _("tool calls")),
            (model.images, _("images")),
            (model.audio, _("audio")),
        )
        if known
    ]
    if model.functions is False:
        can.insert(0, _("no tool calls"))
    if can:
        yield pgettext("between items of a list", ", ").join(can)
    prices = (model.input_price, model.output_price)
    if prices[0] is not None and prices[1] is not None:
        values = {"input": money(float(prices[0])), "output": money(float(prices[1]))}
        yield _("%(input)s in, %(output)s out per 1M") % values
