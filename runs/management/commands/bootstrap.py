"""`bootstrap`: create what a first start needs; the last line is a login link."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.accounts.login_link import build_login_url, create_login_link
from runs.services.bootstrap import bootstrap


class Command(BaseCommand):
    help = "Create the first user, the built-in tools and the demo if missing."

    def handle(self, *_: Any, **__: Any) -> None:
        done = bootstrap()
        if done.has_created_demo:
            self.stdout.write("Created the demo provider and its agents.")
        self.stdout.write(f"To sign in as {done.operator.username}, open:")
        self.stdout.write(build_login_url(create_login_link(done.operator)))
