"""`agentfile_schema`: print the JSON Schema of agent files."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from runs.services.agentfile.json_schema import build_agentfile_schema


class Command(BaseCommand):
    help = "Print the JSON Schema of agent files."

    def handle(self, *_: Any, **__: Any) -> None:
        self.stdout.write(json.dumps(build_agentfile_schema(), indent=2))
