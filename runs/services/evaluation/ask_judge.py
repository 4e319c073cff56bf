"""Ask a model to judge: one request, with the rights of the evaluator's owner."""

import time
from decimal import Decimal

from django.contrib.auth.models import User

from runs.engine.progress import compute_usage_cost
from runs.engine.types import ModelRequest, ModelSettings, Reply
from runs.evaluation.effects import AskModel, ModelAnswered
from runs.evaluation.errors import NotScored
from runs.llm.base import LLM
from runs.llm.errors import ModelCallError
from runs.llm.retry import compute_retry_delay
from runs.models import Provider
from runs.services.providers.client import get_provider_secrets, open_provider_llm
from runs.services.spec.freeze import get_model_prices
from runs.store.commits import release_connection
from runs.store.sanitizer import Sanitizer
from tools.errors import DeadlineExceeded, ToolFailed
from tools.net.deadline import Deadline
from tools.secrets import SecretUnreadable
from tools.text.translatable import translatable

JUDGE_SECONDS = 120.0
"""What one vote may take, with all its attempts."""


def ask_judge(asked: AskModel, *, by: User) -> ModelAnswered:
    """Return the model's reply; raise `NotScored` with the reason there is none."""
    slug = asked.judge.provider
    provider = Provider.objects.usable_by(by).filter(slug=slug).first()
    if provider is None:
        raise NotScored(
            translatable(
                "The judge's provider %(provider)s was not found.", provider=repr(slug)
            )
        )
    settings = ModelSettings(
        model=asked.judge.model,
        provider=slug,
        provider_id=provider.pk,
        parameters=asked.judge.parameters,
        stream=False,
    )
    request = ModelRequest(
        messages=asked.messages, settings=settings, output_schema=asked.output_schema
    )
    try:
        sanitizer = Sanitizer(get_provider_secrets(provider))
        llm = open_provider_llm(provider)
    except SecretUnreadable as unreadable:
        raise NotScored(str(unreadable)) from None
    try:
        reply = _complete(llm, request)
    except (ModelCallError, ToolFailed) as error:
        raise NotScored(
            translatable(
                "The judge failed: %(error)s", error=sanitizer.text(str(error))
            )
        ) from None
    except DeadlineExceeded:
        raise NotScored(
            translatable(
                "The judge did not reply in %(seconds)s s.",
                seconds=f"{JUDGE_SECONDS:g}",
            )
        ) from None
    finally:
        llm.close()
    return ModelAnswered(sanitizer.text(reply.text), _compute_cost(reply, settings))


def _complete(llm: LLM, request: ModelRequest) -> Reply:
    """Call the model; retry what is worth it, as long as there is time."""
    release_connection()
    deadline, attempt = Deadline(seconds=JUDGE_SECONDS), 1
    while True:
        try:
            return llm.complete(request, deadline=deadline)
        except ModelCallError as failure:
            attempt += 1
            delay = compute_retry_delay(attempt, failure)
            if delay is None or delay >= (deadline.remaining() or 0.0):
                raise
            time.sleep(delay)


def _compute_cost(reply: Reply, settings: ModelSettings) -> Decimal:
    prices = get_model_prices(settings)
    if prices is None or reply.usage is None:
        return Decimal(0)
    return Decimal(f"{compute_usage_cost(reply.usage, prices):.6f}")
