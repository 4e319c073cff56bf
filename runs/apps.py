"""The Django application `runs`."""

import sys

from django.apps import AppConfig
from django.conf import settings


class RunsConfig(AppConfig):
    name = "runs"

    def ready(self) -> None:
        """Load extensions, and register the models whose changes are audited."""
        # Models can be imported only when all apps are loaded.
        from runs import models  # noqa: PLC0415
        from runs.extensions import ExtensionBroken, load_extensions  # noqa: PLC0415
        from runs.language import connect_sign_in  # noqa: PLC0415
        from runs.services.agents.edit_sessions import connect_draft_signals  # noqa: PLC0415
        from runs.services.annotation.queued_runs import connect_account_deletion  # noqa: PLC0415
        from tools.audit.tracking import track_model  # noqa: PLC0415

        try:
            load_extensions(settings.EXTENSIONS)
        except ExtensionBroken as broken:
            sys.exit(str(broken))
        track_model(models.Provider, "provider")
        track_model(
            models.ProviderModel,
            "model",
            ignore=["provider", "seen_at", "edited"],
            name=lambda model: f"{model.provider}: {model}",
        )
        track_model(models.PromptTemplate, "prompt")
        track_model(models.Agent, "agent")
        track_model(
            models.AgentTool,
            "agent tool",
            ignore=["agent", "position"],
            name=lambda use: f"{use.agent}: {use.tool or use.sub_agent}",
        )
        track_model(
            models.AgentVersion,
            "agent version",
            made="published",
            ignore=["definition", "gate_result"],
            name=lambda version: f"{version.agent} v{version.number}",
        )
        track_model(models.Evaluator, "evaluator")
        track_model(
            models.Gate,
            "gate",
            ignore=["agent", "imported_digest", "imported_result"],
            name=lambda gate: str(gate.agent),
        )
        track_model(models.AnnotationQueue, "annotation queue")
        track_model(
            models.ScoringRule,
            "scoring rule",
            ignore=["lease_until", "problem", "used_day", "used_runs", "used_cost"],
        )
        track_model(models.Dataset, "dataset", ignore=["next_number", "version"])
        track_model(
            models.DatasetVersion,
            "dataset version",
            made="saved",
            name=lambda version: f"{version.dataset} v{version.number}",
        )
        track_model(
            models.Schedule,
            "schedule",
            ignore=["next_at", "last_at", "last_run", "missed", "skipped"]
            + ["problem", "problem_at"],
        )
        track_model(models.ApiToken, "API token", ignore=["oauth_code"])
        track_model(
            models.Webhook, "webhook", ignore=["failing_since", "old_secret_until"]
        )
        track_model(models.Hook, "incoming webhook", ignore=["key", "old_secret_until"])
        track_model(models.RetentionRule, "retention rule")
        track_model(models.AgentRetention, "retention rule")
        connect_draft_signals()
        connect_account_deletion()
        connect_sign_in()
