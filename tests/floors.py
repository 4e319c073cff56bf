"""The floors of the source tree, and the imports that break them."""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FLOORS: list[list[str]] = [
    ["agentsite"],
    [
        "runs.views",
        "runs.api",
        "runs.live",
        "runs.mcp_server",
        "runs.oauth",
        "runs.openai",
        "runs.forms",
        "runs.ui",
        "runs.admin",
        "runs.htmx",
        "runs.language",
        "runs.time_zone",
        "runs.serializers",
        "runs.whole_number",
        "runs.urls",
        "runs.apps",
        "runs.templatetags",
        "runs.management",
    ],
    ["runs.tasks"],
    ["runs.worker"],
    ["runs.services"],
    ["runs.store"],
    ["runs.wakeup"],
    ["runs.redis_streams"],
    ["runs.models"],
    ["runs.extensions"],
    ["runs.llm"],
    ["runs.evaluation"],
    ["runs.engine"],
    ["tools"],
    [
        "tools.spec",
        "tools.tool_name",
        "tools.errors",
        "tools.registry",
        "tools.net.addresses",
        "tools.net.deadline",
        "tools.net.http_response",
        "tools.net.netguard",
        "tools.net.netpolicy",
        "tools.net.keepalive_client",
        "tools.net.reserved_headers",
        "tools.net.server_sent_events",
        "tools.net.sockets",
        "tools.net.trace_context",
        "tools.net.transport",
        "tools.net.web_address",
        "tools.schema.base64_bytes",
        "tools.schema.safe_schema",
        "tools.schema.signature",
        "tools.text.storable",
        "tools.text.translatable",
        "tools.text.validation_message",
        "tools.text.web_hosts",
    ],
]
"""From the top down: a module may import its own floor and those below."""

MOST_MODULES = 20
"""Modules directly in one folder; a folder with more gets packages."""

NOT_COUNTED = {"__init__.py", "conftest.py"}

FLAT = ["runs.llm", "runs.evaluation", "runs.engine", *FLOORS[-1]]
"""Without Django, and so without our own modules that need it."""

BANNED = {
    **{name: {"django", "celery", "kombu"} for name in FLAT},
    "runs.engine": {"django", "celery", "kombu", "httpx", "httpcore", "redis"},
    "runs.evaluation": {"django", "celery", "kombu", "httpx", "httpcore", "redis"},
}
"""Packages of others that a floor must not know."""

KNOW_CELERY = ["agentsite", "runs.tasks", "runs.wakeup"]

PLAIN = {
    "agentsite.supervise",
    "agentsite.child_processes",
    "agentsite.layout",
}
"""The supervisor: starts fast and stays small."""

STANDARD = sys.stdlib_module_names


class Import(NamedTuple):
    """One import as written: who, what, where."""

    importer: str
    imported: str
    line: int


def breaches(root: Path) -> list[str]:
    """Return a sentence for each import under `root` that breaks a floor."""
    modules = dict(modules_in(root))
    imports = dict.fromkeys(
        found
        for name, path in modules.items()
        for found in imports_of(name, path, modules)
    )
    said = [
        f"{name} is on no floor: name it in tests/floors.py."
        for name in modules
        if floor_of(name) is None and not is_bare_package(name)
    ]
    for found in imports:
        said += [
            f"{found.importer}:{found.line} imports {found.imported}: {why}."
            for why in why_not(found)
        ]
    said += [f"Cycle: {' -> '.join(cycle)}." for cycle in cycles_of_modules(imports)]
    said += [f"Cycle: {' -> '.join(cycle)}." for cycle in cycles_of_folders(imports)]
    tests = (root / "tests").rglob("*.py")
    return said + list(crowded_folders([*modules.values(), *tests], root))


def modules_in(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield (dotted name, file) of our packages, migrations left out."""
    for package in ("agentsite", "runs", "tools"):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if "migrations" not in parts:
                yield ".".join(parts).removesuffix(".__init__"), path


def imports_of(name: str, path: Path, modules: dict[str, Path]) -> Iterator[Import]:
    """Yield every import in the file, also those inside functions."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, name, path)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield Import(name, whole if whole in modules else base, node.lineno)


def absolute(node: ast.ImportFrom, name: str, path: Path) -> str:
    """Return the dotted name after `from`, dots resolved."""
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    up = node.level - (path.name == "__init__.py")
    return ".".join([*parts[: len(parts) - up], *filter(None, [node.module])])


def floor_of(name: str) -> int | None:
    """Return the number of the floor, 0 being the top; the longest name decides."""
    best: tuple[int, int] | None = None
    for number, prefixes in enumerate(FLOORS):
        for prefix in prefixes:
            if within(name, prefix) and (best is None or len(prefix) > best[0]):
                best = (len(prefix), number)
    return None if best is None else best[1]


def why_not(found: Import) -> Iterator[str]:
    """Yield each rule that the import breaks."""
    importer, imported, _ = found
    top = imported.split(".")[0]
    if importer in PLAIN and {top, imported}.isdisjoint(PLAIN | STANDARD):
        yield "the supervisor is standard library only"
    if top in {"celery", "kombu"} and not any(within(importer, k) for k in KNOW_CELERY):
        yield "only wakeup, tasks and agentsite know Celery"
    for prefix, banned in BANNED.items():
        if within(importer, prefix) and top in banned:
            yield f"{prefix} must not know {top}"
    yield from climbs(importer, imported)


def climbs(importer: str, imported: str) -> Iterator[str]:
    """Yield why one of our modules must not import another."""
    mine, theirs = floor_of(importer), floor_of(imported)
    if mine is None or theirs is None:
        return
    if theirs < mine:
        yield "imports go down the floors, never up"
    is_flat = any(within(importer, flat) for flat in FLAT)
    if is_flat and not any(within(imported, flat) for flat in FLAT):
        yield "a module without Django imports only such modules"


def cycles_of_modules(imports: Iterable[Import]) -> Iterator[list[str]]:
    """Yield each cycle of modules once, beginning with its first name."""
    graph: dict[str, set[str]] = {}
    for importer, imported, _ in imports:
        graph.setdefault(importer, set()).add(imported)
    yield from cycles_of(graph)


def cycles_of_folders(imports: Iterable[Import]) -> Iterator[list[str]]:
    """Yield each cycle between the members of one folder, its files and packages.

    An import from `a.b.c` to `a.d.e` is an edge from `a.b` to `a.d`.
    """
    graphs: dict[int, dict[str, set[str]]] = {}
    for importer, imported, _ in imports:
        mine, theirs = importer.split("."), imported.split(".")
        same = 0
        while same < min(len(mine), len(theirs)) and mine[same] == theirs[same]:
            same += 1
        if same < min(len(mine), len(theirs)):
            start, end = (".".join(name[: same + 1]) for name in (mine, theirs))
            graphs.setdefault(same, {}).setdefault(start, set()).add(end)
    seen: set[frozenset[str]] = set()
    for graph in graphs.values():
        for cycle in cycles_of(graph):
            members = frozenset(cycle)
            if members not in seen and not members <= {i.importer for i in imports}:
                seen.add(members)
                yield cycle


def cycles_of(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield each cycle once, beginning with its first name."""
    seen: set[frozenset[str]] = set()
    for start in sorted(graph):
        cycle = way_back(graph, start)
        if cycle and frozenset(cycle) not in seen:
            seen.add(frozenset(cycle))
            yield cycle


def way_back(graph: dict[str, set[str]], start: str) -> list[str]:
    """Return the shortest way from `start` to itself; empty if there is none."""
    ways = [[start]]
    reached: set[str] = set()
    while ways:
        way = ways.pop(0)
        for following in sorted(graph.get(way[-1], ())):
            if following == start:
                return [*way, start]
            if following not in reached:
                reached.add(following)
                ways.append([*way, following])
    return []


def crowded_folders(paths: Iterable[Path], root: Path) -> Iterator[str]:
    """Yield a sentence for each folder with too many modules."""
    counts = Counter(path.parent for path in paths if path.name not in NOT_COUNTED)
    for folder, count in sorted(counts.items()):
        if count > MOST_MODULES:
            name = folder.relative_to(root)
            yield f"{name} has {count} modules, at most {MOST_MODULES}: add packages."


def is_bare_package(name: str) -> bool:
    """Whether it is an app's own `__init__`, which must be empty of imports anyway."""
    return name in {"runs", "tools", "agentsite"}


def within(name: str, prefix: str) -> bool:
    """Whether `name` is the module `prefix` or lies in it."""
    return name == prefix or name.startswith(prefix + ".")
