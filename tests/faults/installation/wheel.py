"""The wheel: built, installed in an environment of its own, and started there.

The environment borrows the locked packages of this one. With another interpreter in
AGENTSITE_WHEEL_PYTHON, pip installs what the wheel requires, from the registry.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.faults.site import NOT_INHERITED, ROOT, Site
from tests.support.empty_database import copy_empty_sqlite
from tests.support.servers import free_port

PARTS = ("agentsite", "runs", "tools", "templates")
OTHER_PYTHON = os.environ.get("AGENTSITE_WHEEL_PYTHON", "")


def build(sources: Path, target: Path, kind: str = "wheel") -> Path:
    """Build a `wheel` or `sdist` without network; return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (found,) = target.iterdir()
    return found


def copy_sources(target: Path) -> Path:
    """Copy what a wheel is built from, with new times."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in PARTS:
        shutil.copytree(
            ROOT / name, target / name, ignore=ignored, copy_function=shutil.copyfile
        )
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copyfile(ROOT / name, target / name)
    return target


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a user who has nothing else."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        """Where commands are started: full of modules with unlucky names."""
        return self.folder / "work"

    @property
    def data(self) -> Path:
        """The default folder of macOS, with a space, on every system."""
        return self.home / "Library/Application Support/agentsite"

    @property
    def program(self) -> Path:
        return self.folder / "venv/bin/agentsite"

    def variables(self, **more: str) -> dict[str, str]:
        """Return the environment of a command."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in NOT_INHERITED
            and not name.startswith(("AGENTSITE_", "DJANGO_", "PYTHON", "XDG_"))
        }
        folders = {"HOME": str(self.home), "XDG_DATA_HOME": str(self.data.parent)}
        return inherited | folders | more

    def run(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run the console command to its end."""
        return self._run(self.program, words, cwd=self.work, variables=more)

    def run_python(
        self, *words: str, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run the Python of the environment, in a folder without modules."""
        python = self.program.with_name("python")
        return self._run(python, words, cwd=self.home, variables=more)

    def _run(
        self,
        program: Path,
        words: tuple[str, ...],
        *,
        cwd: Path,
        variables: dict[str, str],
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [program, *words],
            cwd=cwd,
            env=self.variables(**variables),
            capture_output=True,
            text=True,
            timeout=120,
        )

    def start(self, *words: str, **more: str) -> Site:
        """Start the site; its database begins with all tables, to save time."""
        if not OTHER_PYTHON:
            copy_empty_sqlite(self.data)
        port = int(more.setdefault("PORT", str(free_port())))
        console = tempfile.NamedTemporaryFile(prefix="console-", delete=False)  # noqa: SIM115
        with console:
            process = subprocess.Popen(
                [self.program, *words],
                cwd=self.work,
                stdout=console,
                stderr=console,
                env=self.variables(**more),
            )
        site = Site(self.data, port, process, Path(console.name))
        site.wait_for("Press Ctrl-C to stop.")
        return site


def install_wheel(wheel: Path, folder: Path) -> Installed:
    """Install the wheel beside packages that claim the names of its parts."""
    target = Installed(folder)
    target.home.mkdir()
    target.work.mkdir()
    environment = folder / "venv"
    if OTHER_PYTHON:
        subprocess.run([OTHER_PYTHON, "-m", "venv", environment], check=True)
    else:
        venv.create(environment, symlinks=True)
    for name in ("agentsite", "celery", "redis", "runs", "tools"):
        (target.work / f"{name}.py").write_text(f"raise SystemExit('{name} of work')\n")
    replace_wheel(wheel, target)
    packages = find_site_packages(target)
    for name in ("runs", "tools"):
        (packages / f"{name}.py").write_text(f"raise SystemExit('{name} of others')\n")
    return target


def replace_wheel(wheel: Path, target: Installed) -> None:
    """Install the wheel, in place of another version of it."""
    python = target.folder / "venv/bin/python"
    options = [] if OTHER_PYTHON else ["--no-deps", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--no-input", "-q"]
        + [*options, wheel],
        check=True,
        env=target.variables(),
    )
    if not OTHER_PYTHON:
        ours = sysconfig.get_path("purelib")
        (find_site_packages(target) / "borrowed.pth").write_text(f"{ours}\n")


def find_site_packages(target: Installed) -> Path:
    (found,) = target.folder.glob("venv/lib/python*/site-packages")
    return found


@contextmanager
def signed_in(site: Site) -> Iterator[httpx.Client]:
    """Give a browser that has used the login link."""
    with httpx.Client(
        base_url=f"http://localhost:{site.port}", follow_redirects=True, timeout=60
    ) as client:
        post_form(client, site.login_link, site.login_link)
        yield client


def post_form(client: httpx.Client, page: str, action: str, **fields: str) -> str:
    """Send a form of a page as a browser does; return the page that follows."""
    html = client.get(page).text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', html)
    assert token is not None
    data = fields | {"csrfmiddlewaretoken": token[1]}
    return client.post(action, data=data).raise_for_status().text
