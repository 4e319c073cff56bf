"""`bootstrap`: make what a first start needs; the last line is a login link."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.bootstrap import bootstrap
from runs.services.login_link import address_of_link, make_login_link


class Command(BaseCommand):
    """Make what is missing and print a way in."""

    help = "Make the first user, the built-in tools and the demo where missing."

    def handle(self, *_: Any, **__: Any) -> None:
        """Make them, say so, and print a login link."""
        done = bootstrap()
        if done.made_demo:
            self.stdout.write("Made the demo provider and the agent travel-planner.")
        self.stdout.write(f"To sign in as {done.operator.username}, open:")
        self.stdout.write(address_of_link(make_login_link(done.operator)))
