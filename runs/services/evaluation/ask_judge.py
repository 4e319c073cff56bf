"""Ask a model to judge: with the rights of the evaluator's owner, in its turn."""

import threading
import time
from bisect import insort
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple, NoReturn

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
from runs.services.errors import ScoringPostponed
from runs.services.evaluation.judge_requests import describe_missing_provider
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
TRIAL_SECONDS = 18.0
"""What all votes of a trial may take: a page waits 20 s for its answer."""
FIRST_WAIT_SECONDS = 10.0
"""How long the first vote on a run waits for its turn; else the run is postponed."""
MAX_HELD_TURNS = 16
"""Reserved by a process at one provider, for runs that were postponed."""
NEXT_WAIT_SECONDS = 300.0
"""How long further votes wait: the run has already cost something."""
RENEWED_EVERY = 5.0
"""Seconds of such a wait between two renewals of the lease."""
MAX_STORED_CHARS = 100_000
"""Of a message and of a reply."""


class SentRequest(NamedTuple):
    """What was sent where."""

    provider: str
    """Slug."""
    model: str
    messages: tuple[JudgeMessage, ...]


class ReservedTurns:
    """Turns at providers that postponed runs have reserved.

    Any run may use one when it comes. So judges stay in line with the runs that use
    the same provider, without a thread for each; a process that ends loses a few.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.due = dict[int, list[float]]()
        """By provider: when they come (monotonic), in order."""

    def take(self, provider: int) -> float | None:
        """Return the seconds until a turn that comes soon; null without one.

        Raises `ScoringPostponed` if enough turns are held already.
        """
        with self.lock:
            due, now = self.due.get(provider, []), time.monotonic()
            if due and due[0] - now <= FIRST_WAIT_SECONDS:
                return max(due.pop(0) - now, 0.0)
            if len(due) >= MAX_HELD_TURNS:
                raise ScoringPostponed(due[0] - now)
            return None

    def hold(self, provider: int, seconds: float) -> NoReturn:
        """Store a reserved turn that comes in so many seconds, and postpone the run."""
        with self.lock:
            due, now = self.due.setdefault(provider, []), time.monotonic()
            insort(due, now + seconds)
            raise ScoringPostponed(due[0] - now)


reserved_turns = ReservedTurns()


class JudgeSession:
    """The requests of one evaluator to models while it scores one run."""

    def __init__(
        self,
        *,
        by: User,
        renew_lease: Callable[[], object],
        may_postpone: bool,
        trial_seconds: float | None = None,
    ) -> None:
        self.by = by
        """Who may use the provider: the owner of the evaluator."""
        self.renew_lease = renew_lease
        self.may_postpone = may_postpone
        """Whether no judge has been asked about the run yet."""
        self.trial_seconds = trial_seconds
        """How long a person waits for a turn at the provider; null in a worker."""
        is_trial = trial_seconds is not None
        self.most_seconds = TRIAL_SECONDS if is_trial else JUDGE_SECONDS
        """What one vote may take, and in a trial all of them."""
        self.deadline = Deadline(seconds=TRIAL_SECONDS if is_trial else None)
        self.replies: dict[SentRequest, list[JudgeReply]] = {}

    def ask(self, asked: AskModel) -> ModelAnswered:
        """Return the model's reply; raise `NotScored` with the reason there is none.

        Raises `ScoringPostponed` if the provider's limits allow no request for a while.
        """
        began = time.monotonic()
        try:
            answered = self._ask(asked)
        except NotScored as problem:
            self._add(asked, JudgeReply(problem=problem.args[0]))
            raise
        reply = JudgeReply(
            text=clean_text(answered.text)[:MAX_STORED_CHARS],
            cost=float(answered.cost),
            seconds=round(time.monotonic() - began, 3),
        )
        self._add(asked, reply)
        return answered

    def list_exchanges(self) -> tuple[JudgeExchange, ...]:
        """Return what was asked; a request that was repeated has several replies."""
        return tuple(
            JudgeExchange(**sent._asdict(), replies=tuple(replies))
            for sent, replies in self.replies.items()
        )

    def _add(self, asked: AskModel, reply: JudgeReply) -> None:
        messages = tuple(
            JudgeMessage(role=one.role, text=clean_text(one.text)[:MAX_STORED_CHARS])
            for one in asked.messages
        )
        sent = SentRequest(asked.judge.provider, asked.judge.model, messages)
        self.replies.setdefault(sent, []).append(reply)

    def _ask(self, asked: AskModel) -> ModelAnswered:
        slug = asked.judge.provider
        provider = Provider.objects.usable_by(self.by).filter(slug=slug).first()
        if provider is None:
            raise NotScored(describe_missing_provider(slug))
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
            left = self.deadline.remaining()
            seconds = JUDGE_SECONDS if left is None else left
            reply = _complete(llm, request, share, seconds=seconds)
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
                    seconds=f"{self.most_seconds:g}",
                )
            ) from None
        finally:
            llm.close()
        share.settle(reply.usage)
        return ModelAnswered(sanitizer.text(reply.text), _compute_cost(reply, settings))

    def _wait_for_turn(self, share: ProviderShare, request: ModelRequest) -> None:
        """Sleep until the provider's limits per minute allow the request."""
        if not share.rates:
            return
        share.expect(request)
        seconds = self._reserve(share)
        try:
            self._check_wait(seconds)
            while seconds > 0:
                release_connection()
                time.sleep(min(seconds, RENEWED_EVERY))
                seconds -= RENEWED_EVERY
                self.renew_lease()
        except BaseException:
            share.give_back()
            raise

    def _reserve(self, share: ProviderShare) -> float:
        """Return the seconds until a turn; raise `ScoringPostponed` for a long wait."""
        is_first = self.may_postpone and not self.replies
        if self.trial_seconds is not None or not is_first:
            return share.reserve().seconds
        provider = share.provider.pk
        seconds = reserved_turns.take(provider)
        if seconds is None:
            seconds = share.reserve().seconds
        if seconds > FIRST_WAIT_SECONDS:
            reserved_turns.hold(provider, seconds)
        return seconds

    def _check_wait(self, seconds: float) -> None:
        """Raise `NotScored` if that is too long."""
        most = NEXT_WAIT_SECONDS if self.trial_seconds is None else self.trial_seconds
        if seconds > most:
            raise NotScored(
                translatable(
                    "The provider's limit per minute is used up for the next "
                    "%(seconds)s s.",
                    seconds=f"{seconds:.0f}",
                )
            )


def _complete(
    llm: LLM, request: ModelRequest, share: ProviderShare, *, seconds: float
) -> Reply:
    """Call the model; retry what is worth it, as long as there is time."""
    release_connection()
    deadline, attempt = Deadline(seconds=seconds), 1
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
