"""`bootstrap`: create what a first start needs; the last line is a login link."""

from typing import Any

from django.core.management.base import CommandParser

from runs.management.site_command import SiteCommand
from runs.services.accounts.login_link import build_login_url, create_login_link
from runs.services.bootstrap import bootstrap


class Command(SiteCommand):
    help = "Create the first user, the built-in tools and the demo if missing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-login-link",
            action="store_false",
            dest="login_link",
            help="Do not create and print a login link.",
        )

    def handle(self, *_: Any, login_link: bool, **__: Any) -> None:
        done = bootstrap()
        if done.has_created_demo:
            self.stdout.write("Created the demo provider and its agents.")
        if not login_link:
            return
        self.stdout.write(f"To sign in as {done.operator.username}, open:")
        self.stdout.write(build_login_url(create_login_link(done.operator)))
