"""The wheel, installed and used as `pipx install` and `uvx` do, away from the clone."""

import re
import signal
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import polib
import pytest

from tests.faults.installation.wheel import (
    PARTS,
    Installed,
    build,
    copy_sources,
    find_site_packages,
    install_wheel,
    post_form,
    replace_wheel,
    signed_in,
)
from tests.faults.site import ROOT, Site, is_alive
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]

MAX_BYTES = 5_000_000
LEFT_OUT = {
    "agentsite/packaging/build_hook.py",
    "agentsite/dev.py",
    "agentsite/install.py",
    "runs/management/commands/update_translations.py",
}
AGENTFILE = """
agentfile: 1
providers: [{slug: bird, kind: parrot}]
tools:
  - {slug: stock, kind: function, config: {function: "shop_tools:stock"}}
  - {slug: weigh, kind: function, config: {function: "shop_tools:weigh"}}
agents:
  - {slug: caller, kind: call-lines, provider: bird, model: parrot, tools: [stock]}
  - {slug: weigher, kind: call-lines, provider: bird, model: parrot, tools: [weigh]}
"""
LOOKUP = '''

def lookup(sku: str, warehouse: str) -> int:
    return len(sku + warehouse)


@tool(effect="read", isolated=True)
def weigh(sku: str) -> str:
    """Weigh an article in a process of its own."""
    return f"{sku} weighs 3 kg"
'''


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with the modules of an operator, as the documentation shows them."""
    target = install_wheel(wheel, tmp_path_factory.mktemp("installed"))
    modules = target.work / "modules"
    modules.mkdir()
    tools = read_example("writing-tools.md") + LOOKUP
    (modules / "shop_tools.py").write_text(tools)
    (modules / "my_extensions.py").write_text(read_example("extensions.md"))
    return target


@pytest.fixture(scope="module")
def operator() -> dict[str, str]:
    """The variables that name the modules, with a relative path."""
    return {
        "PYTHONPATH": "modules",
        "AGENTSITE_TOOL_MODULES": "shop_tools",
        "AGENTSITE_EXTENSIONS": "my_extensions",
    }


@pytest.fixture(scope="module")
def site(installed: Installed, operator: dict[str, str]) -> Iterator[Site]:
    write_old_catalog(installed.data)
    site = installed.start("run", **operator)
    yield site
    site.end()


@pytest.fixture(scope="module")
def client(site: Site) -> Iterator[httpx.Client]:
    with signed_in(site) as client:
        yield client


def write_old_catalog(data: Path) -> None:
    """Leave what a clone with the same data folder had compiled."""
    old = polib.POFile()
    old.append(polib.POEntry(msgid="Sign in", msgstr="old"))
    path = data / "locale/zh_Hans/LC_MESSAGES/django.mo"
    path.parent.mkdir(parents=True)
    old.save_as_mofile(str(path))


def read_example(page: str) -> str:
    """Return the first module of a page of the documentation."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)
    assert code is not None
    return code[1]


def find_sources() -> set[str]:
    """Return the files that are of use without a clone."""
    found = {
        str(path.relative_to(ROOT))
        for part in PARTS
        for path in (ROOT / part).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".po"
    }
    catalogs = ROOT.glob("agentsite/locale/*/LC_MESSAGES/*.po")
    compiled = {str(path.relative_to(ROOT).with_suffix(".mo")) for path in catalogs}
    return (found | compiled) - LEFT_OUT


def run_demo(client: httpx.Client) -> str:
    """Run the demo agent to its end; return the address of the run."""
    agents = client.get("/agents/").text
    agent = re.search(r'href="(/agents/\d+/)">Travel planner<', agents)
    assert agent is not None
    question = "Plan a day out in Oslo"
    page = post_form(client, agent[1], f"{agent[1]}run/", input=question)
    run = re.search(r"/runs/\d+/", page)
    assert run is not None
    wait_until(lambda: "A day out in Oslo" in client.get(run[0]).text, seconds=120)
    return run[0]


def test_has_one_top_level_name_and_every_file_of_the_product(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    about = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
    assert {name.split("/")[0] for name in names} == {"agentsite", about}
    files = {
        name.removeprefix("agentsite/_bundle/")
        for name in names
        if name.startswith("agentsite/")
    }
    assert files == find_sources()
    assert wheel.stat().st_size < MAX_BYTES


def test_the_same_sources_give_the_same_bytes(wheel, tmp_path):
    copy = build(copy_sources(tmp_path / "copy"), tmp_path / "built")

    assert copy.read_bytes() == wheel.read_bytes()


def test_the_source_archive_builds_the_same_wheel(wheel, tmp_path):
    archive = build(ROOT, tmp_path / "archive", "sdist")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    sources = tmp_path / archive.name.removesuffix(".tar.gz")

    assert build(sources, tmp_path / "built").read_bytes() == wheel.read_bytes()


def test_an_editable_installation_is_the_clone(tmp_path):
    built = zipfile.ZipFile(build(ROOT, tmp_path, "wheel:editable"))

    (path,) = [name for name in built.namelist() if ".dist-info/" not in name]
    assert path.endswith(".pth")
    assert built.read(path).decode().strip() == str(ROOT.resolve())


def test_the_demo_agent_runs_to_its_end(client):
    page = client.get(run_demo(client)).text

    assert "Succeeded" in page
    assert "weather_sample" in page


def test_pages_have_their_static_files(client):
    page = client.get("/").text
    urls = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
    urls |= {"/static/runs/code_editor.js", "/static/admin/css/base.css"}

    answers = [client.get(url) for url in urls]

    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.content for answer in answers)


def test_pages_and_scripts_speak_chinese(site):
    url, chinese = f"http://localhost:{site.port}", {"Accept-Language": "zh-hans"}
    with httpx.Client(base_url=url, headers=chinese, timeout=60) as client:
        page = client.get("/sign-in/").text
        catalog = re.search(r'src="(/[^"]*jsi18n[^"]*)"', page)
        assert catalog is not None

        assert "<code>agentsite manage login_link NAME</code>" in page
        assert "<title>登录" in page
        assert "\\u" in client.get(catalog[1]).text


def test_modules_of_an_operator_find_documented_names(installed, operator, site):
    variables = operator | {"PORT": str(site.port)}
    (installed.work / "agents.yaml").write_text(AGENTFILE)
    imported = installed.run("manage", "import_agentfile", "agents.yaml", **variables)
    assert imported.returncode == 0, imported.stderr
    token = installed.run("manage", "create_token", "admin", **variables).stdout.strip()
    headers = {"Authorization": f"Bearer {token}"}

    url = f"http://localhost:{site.port}/api/v1/runs?wait=60"
    questions = {"caller": '{"sku": "AB-1234"}', "weigher": "AB-1234"}
    with httpx.Client(headers=headers, timeout=90) as client:
        answers = [
            client.post(url, json={"agent": agent, "inputs": {"input": question}})
            for agent, question in questions.items()
        ]

    outputs = [answer.json()["output"] for answer in answers]
    assert outputs == ["11", "AB-1234 weighs 3 kg"]


def test_a_unit_test_of_an_operator_can_import_a_tool_module(installed):
    code = (
        "from agentsite.layout import make_packages_importable as make;"
        "make(); import shop_tools; print(shop_tools.weigh('AB-1234'))"
    )

    done = installed.run_python("-c", code, PYTHONPATH=str(installed.work / "modules"))

    assert done.stdout == "AB-1234 weighs 3 kg\n", done.stderr


def test_sqlite_is_read_in_a_process_of_its_own(installed, site):
    code = (
        "from tools.net.deadline import Deadline;"
        "from tools.sql.sqlite import describe_sqlite_tables as tables;"
        f"print(tables({str(site.data / 'db.sqlite3')!r}, deadline=Deadline()))"
    )

    done = installed.run("manage", "shell", "-v", "0", "-c", code)

    assert "runs_run(" in done.stdout, done.stderr


def test_a_second_start_shows_where_the_first_is(installed, site):
    second = installed.run()

    assert second.returncode == 1
    assert f"already running at http://localhost:{site.port}" in second.stdout


def test_messages_name_the_commands_of_the_wheel(installed, site, tmp_path):
    variables = {"AGENTSITE_DATA": str(tmp_path), "PORT": str(site.port)}

    unprepared = installed.run("manage", "create_token", "admin", **variables).stderr
    taken = installed.run("run", **variables).stdout

    assert "of `agentsite run`, or run agentsite manage migrate." in unprepared
    assert f"PORT={site.port % 65535 + 1} agentsite run" in taken


def test_an_upgrade_keeps_runs_sessions_and_keys(wheel, tmp_path):
    target = install_wheel(wheel, tmp_path)
    first = target.start()
    pids = first.children()
    with signed_in(first) as client:
        run = run_demo(client)
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(120) == 0
        assert not any(map(is_alive, pids.values()))

        sources = copy_sources(tmp_path / "newer")
        settings = sources / "pyproject.toml"
        newer = re.sub(r'(?m)^version = ".*"', 'version = "9.0"', settings.read_text())
        settings.write_text(newer)
        replace_wheel(build(sources, tmp_path / "built"), target)
        second = target.start(PORT=str(first.port))
        try:
            assert "A day out in Oslo" in client.get(run).text
        finally:
            second.end()
    assert target.run("--version").stdout == "Agentsite 9.0\n"
    assert not list(find_site_packages(target).glob("**/db.sqlite3"))
