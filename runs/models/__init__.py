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
from runs.models.annotation import Annotation, AnnotationQueue, QueuedRun
from runs.models.decisions import Allowance, Decision
from runs.models.evaluation import (
    Dataset,
    DatasetUpload,
    DatasetVersion,
    Evaluator,
    EvaluatorRevision,
    Example,
    JudgeRequest,
)
from runs.models.experiments import (
    Bisection,
    Experiment,
    ExperimentCandidate,
    ExperimentRun,
    Score,
)
from runs.models.gates import Gate, InputReplay, ReplayedInput
from runs.models.hooks import Hook, HookRequest
from runs.models.mail.notifications import ApprovalLink, Notification
from runs.models.providers import Provider, ProviderModel, ProviderOutage
from runs.models.restores import SiteRestore
from runs.models.retention import AgentRetention, DeletionJob, RetentionRule
from runs.models.run_search import (
    DailyRunDurations,
    DailyRunStats,
    RunComment,
    RunSearchRow,
    RunTag,
    RunTool,
    SavedFilter,
)
from runs.models.run_slots import (
    RunDurationSlot,
    RunStatsDay,
    RunStatsSlot,
    RunSumsSlot,
)
from runs.models.runs import Conversation, IdempotencyKey, Resume, Run
from runs.models.schedules import Schedule
from runs.models.scoring_rules import RunScore, ScoredRun, ScoringRule
from runs.models.shares import RunShare
from runs.models.steps import AgentStep, ModelAttempt, ModelCall, StepMedia
from runs.models.telemetry.imported import ImportedSpan, ImportedTrace
from runs.models.webhooks import Delivery, Webhook, WebhookEvent
from runs.models.workers import HealthProbe, MetricCounter, QueueSample, Worker

__all__ = [
    "Agent",
    "AgentRetention",
    "AgentStep",
    "AgentTool",
    "AgentVersion",
    "Allowance",
    "Annotation",
    "AnnotationQueue",
    "ApiToken",
    "ApprovalLink",
    "Bisection",
    "Conversation",
    "Dataset",
    "DatasetUpload",
    "DatasetVersion",
    "Decision",
    "DeletionJob",
    "Delivery",
    "EditSession",
    "Evaluator",
    "EvaluatorRevision",
    "Example",
    "Experiment",
    "ExperimentCandidate",
    "ExperimentRun",
    "Gate",
    "HealthProbe",
    "Hook",
    "HookRequest",
    "WebhookEvent",
    "IdempotencyKey",
    "ImportedSpan",
    "ImportedTrace",
    "InputReplay",
    "JudgeRequest",
    "LoginLink",
    "MetricCounter",
    "ModelAttempt",
    "ModelCall",
    "Notification",
    "Preferences",
    "PromptTemplate",
    "Provider",
    "ProviderModel",
    "ProviderOutage",
    "QueueSample",
    "ReplayedInput",
    "QueuedRun",
    "Resume",
    "RetentionRule",
    "Run",
    "RunDurationSlot",
    "RunSearchRow",
    "RunComment",
    "RunTag",
    "DailyRunDurations",
    "DailyRunStats",
    "RunTool",
    "SavedFilter",
    "RunScore",
    "RunShare",
    "Score",
    "ScoredRun",
    "ScoringRule",
    "RunStatsDay",
    "RunStatsSlot",
    "RunSumsSlot",
    "Schedule",
    "SiteRestore",
    "Spec",
    "StepMedia",
    "Webhook",
    "Worker",
]
