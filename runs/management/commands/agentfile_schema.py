"""`agentfile_schema`: print the JSON Schema of agent files."""

import json
from typing import Any

from runs.management.site_command import SiteCommand
from runs.services.agentfile.json_schema import build_agentfile_schema


class Command(SiteCommand):
    help = "Print the JSON Schema of agent files."

    def handle(self, *_: Any, **__: Any) -> None:
        self.stdout.write(json.dumps(build_agentfile_schema(), indent=2))
