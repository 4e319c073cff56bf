"""The site itself as a Django application, for what must happen in every process."""

from importlib import import_module

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Load the Celery application, so that the bell rings at our broker."""

    name = "agentsite"

    def ready(self) -> None:
        """Load it once Django is ready; nothing else imports it outside workers."""
        import_module("agentsite.celery")
