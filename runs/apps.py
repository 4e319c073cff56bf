"""The Django application `runs`."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Name the app for Django."""

    name = "runs"

    def ready(self) -> None:
        """Keep every change of a definition in the audit log."""
        # Tables can be imported only when all apps are known.
        from runs import models  # noqa: PLC0415
        from runs.services.editing_spell import follow_drafts  # noqa: PLC0415
        from tools.audit.follow import follow  # noqa: PLC0415

        follow(models.Provider, "provider")
        follow(
            models.ProviderModel,
            "model",
            ignore=["provider", "seen_at", "edited"],
            name=lambda model: f"{model.provider}: {model}",
        )
        follow(models.PromptTemplate, "prompt")
        follow(models.Agent, "agent")
        follow(
            models.AgentTool,
            "agent tool",
            ignore=["agent", "position"],
            name=lambda use: f"{use.agent}: {use.tool or use.sub_agent}",
        )
        follow(
            models.AgentVersion,
            "agent version",
            made="published",
            ignore=["definition"],
            name=lambda version: f"{version.agent}, {version}",
        )
        follow(
            models.Schedule,
            "schedule",
            ignore=["next_at", "last_at", "last_run", "missed", "skipped"]
            + ["problem", "problem_at"],
        )
        follow(models.ApiToken, "API token")
        follow(models.Webhook, "webhook", ignore=["failing_since", "old_secret_until"])
        follow_drafts()
