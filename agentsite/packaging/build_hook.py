"""What building a wheel adds to its configuration in pyproject.toml."""

import tempfile
from pathlib import Path
from typing import Any

import polib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileCatalogs(BuildHookInterface[Any]):
    """Put compiled message catalogs into the wheel, instead of their sources."""

    PLUGIN_NAME = "compile-catalogs"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile each catalog into a temporary folder, and include it.

        `version` is that of the archive's format: standard, or editable.
        """
        self.compiled = tempfile.TemporaryDirectory()
        if version == "editable":
            return  # a clone compiles them when it starts
        root = Path(self.root)
        for source in sorted(root.glob("agentsite/locale/*/LC_MESSAGES/*.po")):
            name = source.relative_to(root).with_suffix(".mo")
            target = Path(self.compiled.name, *name.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(polib.pofile(str(source)).to_binary())
            build_data["force_include"][str(target)] = str(name)

    def finalize(
        self, version: str, build_data: dict[str, Any], artifact_path: str
    ) -> None:
        self.compiled.cleanup()
