"""A public name stands for one thing in the whole product."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.floors import modules_in

ROOT = Path(__file__).parents[2]
MOST_SHARED_NAMES = 40
CONVENTIONS = {"Command", "main"}
"""Names that Django and Python look for, in every module that has one."""


def find_shared_names(root: Path) -> dict[str, set[str]]:
    """Return the modules of each public name that more than one module defines."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in modules_in(root):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name].add(name)
    return {
        name: modules
        for name, modules in found.items()
        if len(modules) > 1 and not name.startswith("_") and name not in CONVENTIONS
    }


def test_few_public_names_are_defined_twice():
    shared = find_shared_names(ROOT)

    assert len(shared) <= MOST_SHARED_NAMES, shared


def test_a_name_in_two_modules_is_found(tmp_path):
    (tmp_path / "tools").mkdir()
    for module in ("a", "b"):
        (tmp_path / "tools" / f"{module}.py").write_text(
            "class Command: ...\ndef _hidden(): ...\ndef read_body(): ...\n"
        )

    assert find_shared_names(tmp_path) == {"read_body": {"tools.a", "tools.b"}}
