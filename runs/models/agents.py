"""Agents and prompts: the definitions from which a run's spec is frozen."""

import re
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from runs.models.providers import Provider
from tools.models import Tool
from tools.ownership import Owned, OwnedQuerySet, free_slug

MAX_SUGGESTED_QUESTIONS = 8
MAX_SUGGESTED_QUESTION_LENGTH = 300


INLINE_SLUG = r"^instructions-[0-9]+$"
"""Of a prompt that was written on the page of the agent with that number."""


class PromptTemplate(Owned):
    """A prompt with placeholders: one text, or a list of chat messages."""

    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=30, default="react")
    """The agent kind it is written for."""
    template = models.TextField(blank=True)
    messages = models.JSONField(null=True, blank=True)
    """`[{"role": …, "template": …}]`; null if `template` is used."""
    partials = models.JSONField(default=dict, blank=True)
    """Values of variables that are filled in before a run's inputs."""

    objects = OwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row; a slug made from the name is none of an agent's own prompt."""
        if not self.slug:
            self.slug = free_slug(PromptTemplate, self.name)
            if re.match(INLINE_SLUG, self.slug):
                self.slug = free_slug(PromptTemplate, f"prompt-{self.name}")
        super().save(*args, **kwargs)


class AgentQuerySet(OwnedQuerySet["Agent"]):
    def usable_by(self, user: User | AnonymousUser) -> "AgentQuerySet":
        """Return the agents that `user` may run or add to an agent; only real ones."""
        rows = self.visible_to(user).filter(
            archived_at=None, is_playground=False, is_imported=False
        )
        return cast("AgentQuerySet", rows)


class Agent(Owned):
    """The draft of an agent: a model, a prompt, a kind and tools."""

    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    kind = models.CharField(max_length=30, default="tool-calling")
    """A key of `runs.engine.kinds.registry.AGENT_KINDS`."""
    provider = models.ForeignKey(
        Provider, on_delete=models.PROTECT, related_name="agents"
    )
    model = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict, blank=True)
    prompt = models.ForeignKey(
        PromptTemplate,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="agents",
    )
    """Null for the default prompt of the kind."""
    executor = models.JSONField(default=dict, blank=True)
    """Fields of `runs.engine.types.ExecutorOptions`."""
    memory = models.BooleanField(default=False)
    """Whether the model sees earlier turns of a conversation."""
    suggested_questions = models.JSONField(default=list, db_default=[], blank=True)
    """Texts that an empty conversation offers; a click sends one."""
    is_offered = models.BooleanField(default=False, db_default=False)
    """Whether programs of those who may use it find it as a tool of `/mcp`."""
    continues_without_client = models.BooleanField(default=False, db_default=False)
    """Whether a run continues if the program that waits for it disconnects."""
    is_playground = models.BooleanField(default=False)
    """The hidden agent behind a user's playground; lists leave it out."""
    is_imported = models.BooleanField(default=False, db_default=False)
    """Stands for an agent of another program in imported runs; nobody can run it."""

    objects = AgentQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class AgentTool(models.Model):
    """A tool or another agent that an agent can call."""

    class Policy(models.TextChoices):
        DEFAULT = "default", _("Default")
        ALLOW = "allow", _("Never ask")
        ASK = "ask", _("Always ask")
        DENY = "deny", _("Deny")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="uses")
    tool = models.ForeignKey(
        Tool, null=True, blank=True, on_delete=models.PROTECT, related_name="used_by"
    )
    sub_agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.RESTRICT, related_name="used_by"
    )
    position = models.PositiveSmallIntegerField(default=0)
    policy = models.CharField(max_length=8, choices=Policy, default=Policy.DEFAULT)
    overrides = models.JSONField(default=dict, blank=True)
    """Fields of the tool that differ for this agent: name, description, timeout …"""

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.CheckConstraint(
                name="agent_tool_exactly_one",
                condition=Q(tool=None, sub_agent__isnull=False)
                | Q(tool__isnull=False, sub_agent=None),
            ),
            models.UniqueConstraint(
                fields=["agent", "tool"],
                condition=Q(tool__isnull=False),
                name="agent_tool_once",
            ),
            models.UniqueConstraint(
                fields=["agent", "sub_agent"],
                condition=Q(sub_agent__isnull=False),
                name="agent_sub_agent_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}: {self.tool or self.sub_agent}"


class EditSession(models.Model):
    """One user's edits of a draft, until they are audited as one entry."""

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, related_name="+")
    by = models.CharField(max_length=150)
    by_number = models.BigIntegerField()
    way = models.CharField(max_length=8)
    started_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)
    before = models.JSONField()
    """The draft before the edits: columns of the agent, and its instructions."""

    def __str__(self) -> str:
        return f"{self.by} edits {self.agent}"


class Spec(models.Model):
    """A frozen `AgentSpec`; equal specs share one row."""

    digest = models.CharField(max_length=64, unique=True)
    body = models.JSONField()

    def __str__(self) -> str:
        return self.digest[:12]


class AgentVersion(models.Model):
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    note = models.CharField(max_length=200, blank=True)
    spec = models.ForeignKey(Spec, on_delete=models.PROTECT, related_name="+")
    definition = models.JSONField(null=True)
    """The draft that a restore brings back; see `runs.services.spec.definition`."""
    gate_result = models.JSONField(null=True)
    """A `runs.evaluation.gate.GateResult`; null without a gate."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "number"], name="agent_version_once"
            )
        ]

    def __str__(self) -> str:
        return f"version {self.number}"
