"""All tables of the product except those of tools."""

from runs.models.accounts import ApiToken, LoginLink, Preferences
from runs.models.agents import (
    Agent,
    AgentTool,
    AgentVersion,
    EditSession,
    PromptTemplate,
    Spec,
)
from runs.models.decisions import Allowance, Decision
from runs.models.providers import Provider, ProviderModel, ProviderOutage
from runs.models.restores import SiteRestore
from runs.models.retention import AgentRetention, DeletionJob, RetentionRule
from runs.models.run_search import (
    DailyRunDurations,
    DailyRunStats,
    RunSearchRow,
    RunTag,
    RunTool,
    SavedFilter,
)
from runs.models.runs import Conversation, IdempotencyKey, Resume, Run
from runs.models.schedules import Schedule
from runs.models.shares import RunShare
from runs.models.steps import AgentStep, ModelAttempt, ModelCall, StepMedia
from runs.models.webhooks import Delivery, Webhook, WebhookEvent
from runs.models.workers import HealthProbe, MetricCounter, QueueSample, Worker

__all__ = [
    "Agent",
    "AgentRetention",
    "AgentStep",
    "AgentTool",
    "AgentVersion",
    "Allowance",
    "ApiToken",
    "Conversation",
    "Decision",
    "DeletionJob",
    "Delivery",
    "EditSession",
    "HealthProbe",
    "WebhookEvent",
    "IdempotencyKey",
    "LoginLink",
    "MetricCounter",
    "ModelAttempt",
    "ModelCall",
    "Preferences",
    "PromptTemplate",
    "Provider",
    "ProviderModel",
    "ProviderOutage",
    "QueueSample",
    "Resume",
    "RetentionRule",
    "Run",
    "RunSearchRow",
    "RunTag",
    "DailyRunDurations",
    "DailyRunStats",
    "RunTool",
    "SavedFilter",
    "RunShare",
    "Schedule",
    "SiteRestore",
    "Spec",
    "StepMedia",
    "Webhook",
    "Worker",
]
