"""Model providers: address, credentials, and prices of their models."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from runs.llm.key_variables import may_hold_key, read_key_variable
from runs.llm.registry import PROVIDER_KINDS
from tools.ownership import Owned, OwnedQuerySet
from tools.secrets import seal, unseal
from tools.text.translatable_field import TranslatableTextField


class Provider(Owned):
    """A model server, or the built-in demo model."""

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20, default="openai")
    """A key of `runs.llm.registry.PROVIDER_KINDS`."""
    base_url = models.CharField(max_length=500, blank=True)
    key_env = models.CharField(max_length=120, blank=True)
    """Environment variable of the worker with the key; see `may_read`."""
    sealed_key = models.TextField(blank=True)
    sealed_headers = models.TextField(blank=True)
    """Extra headers, one `Name: value` per line; sealed, as they may hold secrets."""
    timeout = models.FloatField(
        default=60.0, validators=[MinValueValidator(1), MaxValueValidator(3600)]
    )
    """Seconds without a byte after which a call is given up."""
    outage_minutes = models.FloatField(
        default=30.0,
        db_default=30.0,
        validators=[MinValueValidator(0), MaxValueValidator(10_080)],
    )
    """How long a run waits while the provider is unavailable; 0: it fails at once."""
    max_concurrent_runs = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    """Runs that use it at once, in all workers; null for any number."""
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    tokens_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    """Of requests and replies together; model calls above these limits wait."""
    default_model = models.CharField(max_length=200, blank=True)
    stream = models.BooleanField(default=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    """When the connection was last tested; null if not since the last change."""
    test_error = models.TextField(blank=True)
    """Why that test failed; empty if it passed."""

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="provider_timeout_positive", condition=models.Q(timeout__gt=0)
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def connection_settings(self) -> tuple[str, ...]:
        secrets = (self.key_env, self.sealed_key, self.sealed_headers)
        return (self.kind, self.base_url, *secrets)

    @property
    def takes_audio(self) -> bool:
        kind = PROVIDER_KINDS.get(self.kind)
        return kind is not None and kind.takes_audio

    def reset_test(self, *, unless: tuple[str, ...] = ()) -> None:
        """Discard the test result, unless the connection settings equal `unless`."""
        if self.connection_settings != unless:
            self.tested_at, self.test_error = None, ""

    def set_key(self, key: str) -> None:
        """Seal `key`: it can be used, replaced and removed, but never shown again."""
        self.sealed_key = seal(key)

    def key(self) -> str:
        """Return the stored key, else that of the environment, else an empty text."""
        if self.sealed_key:
            return unseal(self.sealed_key)
        return read_key_variable(self.key_env) if self.may_read(self.key_env) else ""

    def may_read(self, name: str) -> bool:
        """Whether the provider may send the value of the variable `name`."""
        if not name or not self.owner.is_superuser:
            return False
        return may_hold_key(name, listed=settings.KEY_VARIABLES)

    def set_headers(self, headers: str) -> None:
        """Seal extra headers given as `Name: value` lines."""
        self.sealed_headers = seal(headers)

    def headers(self) -> tuple[tuple[str, str], ...]:
        lines = unseal(self.sealed_headers).splitlines()
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return tuple((name.strip(), value.strip()) for name, value in pairs)


class ProviderOutage(models.Model):
    """A provider or model that is unavailable: its runs wait, one at a time tests it.

    The row is deleted after the recovery, when no run waits for it.
    """

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="outages", db_index=False
    )
    model = models.CharField(max_length=200, blank=True, default="", db_default="")
    """The model that is unavailable; empty if no model of the provider responds."""
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    """When the provider responded again; runs that still wait continue soon."""
    error_code = models.CharField(max_length=40)
    error_message = TranslatableTextField()
    """Why the last attempt failed."""
    probe_at = models.DateTimeField()
    """When the next run may call the provider, even if `probe_run` has not ended."""
    probe_run = models.ForeignKey(
        "runs.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """The run that tests the provider now."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model"], name="provider_outage_once"
            )
        ]

    def __str__(self) -> str:
        return f"outage of provider {self.provider_id} {self.model}".rstrip()


class ProviderModel(models.Model):
    """A model of a provider: its features and prices."""

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="models"
    )
    name = models.CharField(max_length=200)
    functions = models.BooleanField(null=True)
    """Whether it supports function calling; null if unknown."""
    images = models.BooleanField(null=True)
    """Whether it reads images; they are sent only if so."""
    audio = models.BooleanField(null=True)
    """Whether it takes sounds; they are sent only if so."""
    stop_words = models.BooleanField(null=True)
    streaming = models.BooleanField(null=True)
    context_tokens = models.PositiveIntegerField(null=True)
    input_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    """Per million tokens."""
    cached_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    output_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    seen_at = models.DateTimeField(null=True)
    """When the server last listed it."""
    edited = models.JSONField(default=list)
    """Names of the fields that a person has set; the server does not overwrite them."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "name"], name="provider_model_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_audio_sent(self) -> bool:
        return self.audio is True and self.provider.takes_audio
