"""The Django application for what must happen in every process."""

from importlib import import_module

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "agentsite"

    def ready(self) -> None:
        """Load the Celery application, so that every process uses our broker."""
        import_module("agentsite.celery")
        import_module("agentsite.checks")  # registers them
