"""Imports go down the floors, never up, and never in a cycle."""

from pathlib import Path

import pytest

from tests.floors import breaches

ROOT = Path(__file__).parent.parent


def test_the_source_keeps_its_floors():
    assert breaches(ROOT) == []


@pytest.mark.parametrize("package", ["runs", "tools", "agentsite"])
def test_a_top_package_is_empty(package):
    assert (ROOT / package / "__init__.py").read_text() == ""


def plant(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return breaches(root)


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        pytest.param(
            "runs/services/a.py", "from runs.views import x", "never up", id="up"
        ),
        pytest.param(
            "runs/services/a.py",
            "def f():\n    import runs.tasks",
            "never up",
            id="hidden-in-a-function",
        ),
        pytest.param(
            "runs/services/a.py", "from ..tasks import x", "never up", id="relative"
        ),
        pytest.param("runs/wakeup.py", "import runs.services", "never up", id="wakeup"),
        pytest.param(
            "runs/redis_streams.py", "import runs.wakeup", "never up", id="stream"
        ),
        pytest.param("runs/llm/a.py", "import runs.models", "never up", id="llm"),
        pytest.param("runs/engine/a.py", "import runs.llm", "never up", id="engine"),
        pytest.param("tools/kinds/a.py", "import runs.engine", "never up", id="tools"),
        pytest.param(
            "runs/store/a.py", "import runs.services.b", "never up", id="store"
        ),
        pytest.param(
            "runs/services/a.py", "import runs.worker.b", "never up", id="worker"
        ),
        pytest.param("tools/spec.py", "import tools.models", "never up", id="spec"),
        pytest.param("runs/tasks.py", "import agentsite.env", "never up", id="site"),
        pytest.param("runs/engine/a.py", "import django", "know django", id="django"),
        pytest.param("runs/engine/a.py", "import httpx", "know httpx", id="httpx"),
        pytest.param(
            "runs/llm/a.py", "from django.db import x", "know django", id="llm-django"
        ),
        pytest.param(
            "tools/net/netguard.py", "import django", "know django", id="guard-django"
        ),
        pytest.param(
            "runs/llm/a.py", "import tools.models", "without Django", id="by-the-way"
        ),
        pytest.param(
            "runs/services/a.py", "import celery", "know Celery", id="services-celery"
        ),
        pytest.param(
            "runs/models/a.py", "from kombu import x", "know Celery", id="kombu"
        ),
        pytest.param(
            "agentsite/supervise.py", "import django", "standard library", id="boot"
        ),
        pytest.param("runs/misc.py", "", "on no floor", id="no-floor"),
    ],
)
def test_a_planted_breach_is_found(tmp_path, file, text, why):
    (said, *_) = plant(tmp_path, {file: text})

    assert why in said


def test_a_cycle_on_one_floor_is_found_once(tmp_path):
    said = plant(
        tmp_path,
        {
            "runs/services/a.py": "import runs.services.b",
            "runs/services/b.py": "from runs.services.c import x",
            "runs/services/c.py": "from runs.services import a",
        },
    )

    assert said == [
        "Cycle: runs.services.a -> runs.services.b -> runs.services.c"
        " -> runs.services.a."
    ]


def test_a_cycle_of_two_folders_is_found(tmp_path):
    said = plant(
        tmp_path,
        {
            "runs/services/chat/a.py": "import runs.services.forks.b",
            "runs/services/chat/c.py": "",
            "runs/services/forks/b.py": "",
            "runs/services/forks/d.py": "from runs.services.chat.c import x",
        },
    )

    assert said == [
        "Cycle: runs.services.chat -> runs.services.forks -> runs.services.chat."
    ]


@pytest.mark.parametrize("folder", ["runs/services", "tests", "tests/views"])
def test_a_crowded_folder_is_found(tmp_path, folder):
    said = plant(tmp_path, {f"{folder}/a{number}.py": "" for number in range(21)})

    assert said == [f"{folder} has 21 modules, at most 20: add packages."]


@pytest.mark.parametrize("uncounted", ["__init__.py", "conftest.py"])
def test_a_full_folder_passes(tmp_path, uncounted):
    files = {f"tests/views/a{number}.py": "" for number in range(20)}

    assert plant(tmp_path, {**files, f"tests/views/{uncounted}": ""}) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("runs/views/a.py", "import runs.services.b", id="down"),
        pytest.param("runs/engine/a.py", "from tools.spec import x", id="spec"),
        pytest.param("runs/llm/a.py", "import httpx", id="llm-http"),
        pytest.param("runs/services/a.py", "import runs.wakeup", id="wakeup"),
        pytest.param("runs/wakeup.py", "from celery import x", id="wakeup-celery"),
    ],
)
def test_a_rightful_import_passes(tmp_path, file, text):
    assert plant(tmp_path, {file: text}) == []
