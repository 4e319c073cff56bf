"""Model providers: where they are, how to reach them, and what their models cost."""

import os

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from runs.llm.key_variables import may_hold_key
from tools.ownership import Owned, OwnedQuerySet
from tools.secrets import seal, unseal


class Provider(Owned):
    """A server that answers for models, or the built-in demo."""

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=20, default="openai")
    """A key of `runs.llm.registry.KINDS`."""
    base_url = models.CharField(max_length=500, blank=True)
    key_env = models.CharField(max_length=120, blank=True)
    """Environment variable of the worker that holds the key, where `may_read`."""
    sealed_key = models.TextField(blank=True)
    sealed_headers = models.TextField(blank=True)
    """Extra headers, one `Name: value` a line, sealed because they may hold secrets."""
    timeout = models.FloatField(
        default=60.0, validators=[MinValueValidator(1), MaxValueValidator(3600)]
    )
    """Seconds without a byte after which a call is given up."""
    default_model = models.CharField(max_length=200, blank=True)
    stream = models.BooleanField(default=True)
    tested_at = models.DateTimeField(null=True, blank=True)
    """When its connection was last tested; null where it never was as it is now."""
    test_error = models.TextField(blank=True)
    """Why that test failed; empty where the server answered."""

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
    def reach(self) -> tuple[str, ...]:
        """Return all that a test of the connection depends on."""
        secrets = (self.key_env, self.sealed_key, self.sealed_headers)
        return (self.kind, self.base_url, *secrets)

    def forget_test(self, *, unless: tuple[str, ...] = ()) -> None:
        """Say that it was never tested as it is now, unless its reach is the same."""
        if self.reach != unless:
            self.tested_at, self.test_error = None, ""

    def set_key(self, key: str) -> None:
        """Seal `key`; it can be used, replaced and removed, never read again."""
        self.sealed_key = seal(key)

    def key(self) -> str:
        """Return the key to send: the typed one, else the environment's, else none."""
        if self.sealed_key:
            return unseal(self.sealed_key)
        return os.environ.get(self.key_env, "") if self.may_read(self.key_env) else ""

    def may_read(self, name: str) -> bool:
        """Whether the provider may send what the variable `name` holds."""
        if not name or not self.owner.is_superuser:
            return False
        return may_hold_key(name, listed=settings.KEY_VARIABLES)

    def set_headers(self, headers: str) -> None:
        """Seal extra headers given as `Name: value` lines."""
        self.sealed_headers = seal(headers)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the extra headers to send."""
        lines = unseal(self.sealed_headers).splitlines()
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return tuple((name.strip(), value.strip()) for name, value in pairs)


class ProviderModel(models.Model):
    """One model of a provider: what it can do and what it costs."""

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="models"
    )
    name = models.CharField(max_length=200)
    functions = models.BooleanField(null=True)
    """Whether it calls functions; null is unknown."""
    stop_words = models.BooleanField(null=True)
    streaming = models.BooleanField(null=True)
    context_tokens = models.PositiveIntegerField(null=True)
    input_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    """Per million tokens."""
    cached_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    output_price = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    seen_at = models.DateTimeField(null=True)
    """When the server last named it."""
    edited = models.JSONField(default=list)
    """Names of the fields that a person has set; the server does not change those."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "name"], name="provider_model_once"
            )
        ]

    def __str__(self) -> str:
        return self.name
