"""Ask a model to judge: with the rights of the evaluator's owner, in its turn."""

import time
from collections.abc import Callable
from decimal import Decimal

from django.contrib.auth.models import User

from runs.engine.parsing.clean import clean_text
from runs.engine.progress import compute_usage_cost
from runs.engine.types import ModelRequest, ModelSettings, Reply
from runs.evaluation.effects import AskModel, ModelAnswered
from runs.evaluation.errors import NotScored
from runs.evaluation.types import JudgeExchange, JudgeMessage, JudgeReply
from runs.llm.base import LLM
from runs.llm.errors import ModelCallError
from runs.llm.retry import compute_retry_delay
from runs.models import Provider
from runs.services.providers.client import get_provider_secrets, open_provider_llm
from runs.services.providers.rate import ProviderShare
from runs.services.spec.freeze import get_model_prices
from runs.store.commits import release_connection
from runs.store.sanitizer import Sanitizer
from tools.errors import DeadlineExceeded, ToolFailed
from tools.net.deadline import Deadline
from tools.secrets import SecretUnreadable
from tools.text.translatable import translatable

JUDGE_SECONDS = 120.0
"""What one vote may take, with all its attempts."""
RATE_WAIT_SECONDS = 900.0
"""How long a vote waits for its turn, if its provider allows so much per minute."""
LEASE_SECONDS = 20.0
"""After so much of such a wait, the lease of the work is renewed."""
MAX_KEPT_CHARS = 100_000
"""Of a reply that is kept with the score."""


class ScoringInterrupted(Exception):
    """Another worker scores the run now: whoever scores it here has to stop."""


class Judging:
    """The requests of one evaluator to models while it scores one run."""

    def __init__(
        self, *, by: User, wait_seconds: float, renew_lease: Callable[[], object]
    ) -> None:
        self.by = by
        """Who may use the provider: the owner of the evaluator."""
        self.wait_seconds = wait_seconds
        self.renew_lease = renew_lease
        self.exchanges: dict[AskedOnce, list[JudgeReply]] = {}

    def ask(self, asked: AskModel) -> ModelAnswered:
        """Return the model's reply; raise `NotScored` with the reason there is none."""
        began = time.monotonic()
        try:
            answered = self._ask(asked)
        except NotScored as problem:
            self._keep(asked, JudgeReply(problem=str(problem)))
            raise
        text = clean_text(answered.text)[:MAX_KEPT_CHARS]
        reply = JudgeReply(
            text=text,
            cost=float(answered.cost),
            seconds=round(time.monotonic() - began, 3),
        )
        self._keep(asked, reply)
        return answered

    def list_exchanges(self) -> tuple[JudgeExchange, ...]:
        """Return what was asked; a request that was repeated has several replies."""
        return tuple(
            JudgeExchange(
                provider=slug, model=model, messages=sent, replies=tuple(replies)
            )
            for (slug, model, sent), replies in self.exchanges.items()
        )

    def _keep(self, asked: AskModel, reply: JudgeReply) -> None:
        sent = tuple(
            JudgeMessage(role=one.role, text=clean_text(one.text))
            for one in asked.messages
        )
        once = (asked.judge.provider, asked.judge.model, sent)
        self.exchanges.setdefault(once, []).append(reply)

    def _ask(self, asked: AskModel) -> ModelAnswered:
        slug = asked.judge.provider
        provider = Provider.objects.usable_by(self.by).filter(slug=slug).first()
        if provider is None:
            raise NotScored(
                translatable(
                    "The judge's provider %(provider)s was not found.",
                    provider=repr(slug),
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
            messages=asked.messages,
            settings=settings,
            output_schema=asked.output_schema,
        )
        try:
            sanitizer = Sanitizer(get_provider_secrets(provider))
            llm = open_provider_llm(provider)
        except SecretUnreadable as unreadable:
            raise NotScored(str(unreadable)) from None
        share = ProviderShare(provider)
        try:
            self._wait_for_turn(share, request)
            reply = _complete(llm, request, share)
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
        share.settle(reply.usage)
        return ModelAnswered(sanitizer.text(reply.text), _compute_cost(reply, settings))

    def _wait_for_turn(self, share: ProviderShare, request: ModelRequest) -> None:
        """Sleep until the provider's limits per minute allow the request."""
        share.expect(request)
        seconds = share.reserve().seconds
        if seconds > self.wait_seconds:
            share.give_back()
            raise NotScored(
                translatable(
                    "The provider's limit per minute is used up for the next "
                    "%(seconds)s s.",
                    seconds=f"{seconds:.0f}",
                )
            )
        while seconds > 0:
            release_connection()
            time.sleep(min(seconds, LEASE_SECONDS))
            seconds -= LEASE_SECONDS
            self.renew_lease()


AskedOnce = tuple[str, str, tuple[JudgeMessage, ...]]
"""Provider, model and messages of a request."""


def _complete(llm: LLM, request: ModelRequest, share: ProviderShare) -> Reply:
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
            share.count_retry()


def _compute_cost(reply: Reply, settings: ModelSettings) -> Decimal:
    prices = get_model_prices(settings)
    if prices is None or reply.usage is None:
        return Decimal(0)
    return Decimal(f"{compute_usage_cost(reply.usage, prices):.6f}")
