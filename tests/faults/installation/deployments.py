"""What the files of a deployment would start, read from the files themselves."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/deploy"
VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::(-|\?)((?:[^${}]|\$\{[^{}]*\})*))?\}")


@dataclass(frozen=True)
class Process:
    """One command with its variables and its health check."""

    command: list[str]
    environment: dict[str, str]
    check: list[str] | str | None = None
    """A command, or the path that a web server answers; None if there is none."""

    def replaced(self, addresses: dict[str, str]) -> "Process":
        """Return it with other addresses and paths."""

        found = re.compile("|".join(map(re.escape, addresses)))

        def replace(text: str) -> str:
            return found.sub(lambda match: addresses[match[0]], text)

        check = self.check
        return Process(
            [replace(word) for word in self.command],
            {name: replace(value) for name, value in self.environment.items()},
            [replace(word) for word in check] if isinstance(check, list) else check,
        )


@dataclass(frozen=True)
class Deployment:
    """The three kinds of processes of one way to deploy."""

    migrate: Process
    web: Process
    worker: Process
    secrets: str
    """The folder of the secret files."""
    port: str = "8000"


def read_compose(variables: dict[str, str]) -> Deployment:
    text = (ROOT / "docker-compose.yml").read_text()
    services = yaml.safe_load(text)["services"]

    def read(name: str) -> Process:
        service = interpolate_all(services[name], variables)
        words = service.get("command") or read_dockerfile("CMD")
        command = shlex.split(words) if isinstance(words, str) else words
        test = service.get("healthcheck", {}).get("test", [None])[1:]
        return Process(command, image_variables() | service["environment"], test)

    return Deployment(
        read("migrate"), read("web"), read("worker"), secrets="/run/secrets"
    )


def interpolate_all(value: Any, variables: dict[str, str]) -> Any:
    """Replace `${NAME:-default}` everywhere, as Compose does."""
    if isinstance(value, dict):
        return {k: interpolate_all(v, variables) for k, v in value.items()}
    if isinstance(value, list):
        return [interpolate_all(v, variables) for v in value]
    return interpolate(value, variables) if isinstance(value, str) else value


def interpolate(text: str, variables: dict[str, str]) -> str:
    def found(match: re.Match[str]) -> str:
        name, kind, default = match.groups()
        if name is None:
            return "$"
        value = variables.get(name, "")
        assert value or kind != "?", f"{name}: {default}"
        return value or interpolate(default or "", variables)

    return VARIABLE.sub(found, text)


def read_dockerfile(instruction: str) -> Any:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    found = [line for line in lines if line.startswith(f"{instruction} ")]
    assert len(found) == 1
    text = found[0].removeprefix(f"{instruction} ")
    return json.loads(text) if text.startswith("[") else text


def image_variables() -> dict[str, str]:
    words = shlex.split(read_dockerfile("ENV"))
    return dict(word.split("=", 1) for word in words)


def read_kubernetes(_: dict[str, str]) -> Deployment:
    folder = FOLDER / "kubernetes"
    names = yaml.safe_load((folder / "kustomization.yaml").read_text())
    literals = names["configMapGenerator"][0]["literals"]
    config = image_variables() | dict(each.split("=", 1) for each in literals)
    objects = [
        each
        for path in sorted(folder.glob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text())
    ]

    def read(kind: str, name: str) -> Process:
        (found,) = (
            each
            for each in objects
            if (each["kind"], each.get("metadata", {}).get("name")) == (kind, name)
        )
        (box,) = found["spec"]["template"]["spec"]["containers"]
        words = [*box["command"], *box.get("args", [])]
        command = [re.sub(r"\$\((\w+)\)", lambda m: config[m[1]], w) for w in words]
        probe = box.get("livenessProbe", {})
        check = probe.get("exec", {}).get("command")
        return Process(command, config, check or probe.get("httpGet", {}).get("path"))

    return Deployment(
        read("Job", "agentsite-migrate"),
        read("Deployment", "agentsite-web"),
        read("Deployment", "agentsite-worker"),
        secrets="/run/secrets/agentsite",
    )


def read_systemd(_: dict[str, str]) -> Deployment:
    shared = dict(read_assignments((FOLDER / "systemd/agentsite.env").read_text()))
    specifiers = {"%d": "/run/credentials", "%S": "/var/lib", "%i": "8001"}

    def read(name: str) -> Process:
        unit = (FOLDER / f"systemd/{name}.service").read_text()
        for old, new in specifiers.items():
            unit = unit.replace(old, new)
        lines = list(read_assignments(unit))
        words = [w for key, line in lines if key == "Environment" for w in line.split()]
        variables = shared | dict(word.split("=", 1) for word in words)
        (start,) = (line for key, line in lines if key == "ExecStart")
        command = shlex.split(interpolate(start, variables))
        command[0] = command[0].removeprefix("/opt/agentsite/.venv/bin/")
        return Process(command, variables)

    return Deployment(
        read("agentsite-migrate"),
        read("agentsite-web@"),
        read("agentsite-worker@"),
        secrets="/run/credentials",
        port="8001",
    )


def read_assignments(text: str) -> list[tuple[str, str]]:
    lines = (line for line in text.splitlines() if "=" in line and line[0] != "#")
    return [(key, value) for key, _, value in (line.partition("=") for line in lines)]


READERS: dict[str, Callable[[dict[str, str]], Deployment]] = {
    "compose": read_compose,
    "kubernetes": read_kubernetes,
    "systemd": read_systemd,
}
