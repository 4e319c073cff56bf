"""Requests and tokens per minute of a provider, shared by all that call its models."""

from typing import NamedTuple

from runs.engine.progress import estimate_usage
from runs.engine.types import ModelRequest, Usage
from runs.models import Provider, Run
from runs.services.health.queue import count_live_workers
from runs.services.providers.token_bucket import BucketUse, SharedBuckets

EXPECTED_OUTPUT_TOKENS = 500
"""Tokens of a reply, until it says how many it has."""
RATES = (Run.Limit.REQUESTS, Run.Limit.TOKENS)

buckets = SharedBuckets(count_live_workers)


class RateWait(NamedTuple):
    """How long a request has to wait for its turn, and for which limit."""

    seconds: float
    kind: Run.Limit


class _Rate(NamedTuple):
    kind: Run.Limit
    per_minute: int


class ProviderShare:
    """What one caller takes of what its provider allows per minute."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        limits = (provider.requests_per_minute, provider.tokens_per_minute)
        self.rates = [
            _Rate(kind, limit)
            for kind, limit in zip(RATES, limits, strict=True)
            if limit is not None
        ]
        self.expected_tokens = 0
        """Tokens taken for the current call."""

    def expect(self, request: ModelRequest) -> None:
        """Estimate the tokens of the next call."""
        sent = estimate_usage(request, "").input_tokens
        asked = request.settings.parameters.get("max_tokens")
        most = asked if isinstance(asked, int) else EXPECTED_OUTPUT_TOKENS
        self.expected_tokens = sent + min(most, EXPECTED_OUTPUT_TOKENS)

    def reserve(self) -> RateWait:
        """Take a request and its expected tokens; the turn comes after the wait."""
        waits = self._take(requests=1, tokens=self.expected_tokens)
        kinds = (rate.kind for rate in self.rates)
        return max(map(RateWait, waits, kinds), default=RateWait(0.0, RATES[0]))

    def give_back(self) -> None:
        """Give up the turn that was reserved."""
        self._take(requests=-1, tokens=-self.expected_tokens)

    def count_retry(self) -> None:
        """Take another request, which is sent at once: the next calls wait for it."""
        self._take(requests=1, tokens=self.expected_tokens)

    def settle(self, usage: Usage | None) -> None:
        """Give back or take the tokens by which the reply differs from the estimate."""
        if usage is not None:
            used = usage.input_tokens + usage.output_tokens
            self._take(requests=0, tokens=used - self.expected_tokens)

    def _take(self, *, requests: int, tokens: int) -> list[float]:
        if not self.rates:
            return []
        amounts = {Run.Limit.REQUESTS: requests, Run.Limit.TOKENS: tokens}
        return buckets.take(
            [
                BucketUse(f"rate:{self.provider.pk}:{kind}", limit, amounts[kind])
                for kind, limit in self.rates
            ]
        )
