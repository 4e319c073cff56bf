"""Every table of the product but those of tools."""

from runs.models.agents import (
    Agent,
    AgentTool,
    AgentVersion,
    EditingSpell,
    PromptTemplate,
    Spec,
)
from runs.models.decisions import Allowance, Decision
from runs.models.lists import RunCard, RunTag, RunTally, RunTool, SavedFilter
from runs.models.people import ApiToken, LoginLink, Preferences
from runs.models.providers import Provider, ProviderModel
from runs.models.runs import Conversation, IdempotencyKey, Resume, Run
from runs.models.schedules import Schedule
from runs.models.shares import RunShare
from runs.models.steps import AgentStep, ModelAttempt, ModelCall
from runs.models.webhooks import Delivery, Event, Webhook
from runs.models.workers import QueueSample, Worker

__all__ = [
    "Agent",
    "AgentStep",
    "AgentTool",
    "AgentVersion",
    "Allowance",
    "ApiToken",
    "Conversation",
    "Decision",
    "Delivery",
    "EditingSpell",
    "Event",
    "IdempotencyKey",
    "LoginLink",
    "ModelAttempt",
    "ModelCall",
    "Preferences",
    "PromptTemplate",
    "Provider",
    "ProviderModel",
    "QueueSample",
    "Resume",
    "Run",
    "RunCard",
    "RunTag",
    "RunTally",
    "RunTool",
    "SavedFilter",
    "RunShare",
    "Schedule",
    "Spec",
    "Webhook",
    "Worker",
]
