"""The console command; tests/faults/installation starts it from the wheel."""

import pytest

from agentsite.packaging.command import main, make_paths_absolute


@pytest.mark.parametrize(
    ("name", "value", "absolute"),
    [
        pytest.param("AGENTSITE_DATA", "d", "{here}/d", id="data"),
        pytest.param("AGENTSITE_DATA", "", "", id="no-data"),
        pytest.param("PYTHONPATH", ".:m:/x", "{here}:{here}/m:/x", id="modules"),
        pytest.param("SECRET_KEY_FILE", "key", "{here}/key", id="file"),
        pytest.param("SECRET_KEY_FILE", "none", "none", id="no-file"),
        pytest.param(
            "DATABASE_URL", "sqlite:///a%20b", "sqlite:///{quoted}/a%20b", id="sqlite"
        ),
        pytest.param("DATABASE_URL", "sqlite:////x", "sqlite:////x", id="absolute"),
        pytest.param("DATABASE_URL", "sqlite:///~/x", "sqlite:///~/x", id="home"),
        pytest.param(
            "AGENTSITE_SQL_CONNECTIONS",
            "shop=sqlite:///shop.db old=sqlite:////x all=postgresql:///x",
            "shop=sqlite:///{quoted}/shop.db old=sqlite:////x all=postgresql:///x",
            id="tools",
        ),
        pytest.param("DATABASE_URL", "postgresql:///x", "postgresql:///x", id="server"),
    ],
)
def test_relative_paths_start_in_the_folder_of_the_person(
    tmp_path, monkeypatch, name, value, absolute
):
    here = tmp_path / "a folder"
    here.mkdir()
    (here / "key").touch()
    monkeypatch.chdir(here)
    variables = {name: value}

    make_paths_absolute(variables)

    quoted = f"{here}".replace(" ", "%20")
    assert variables == {name: absolute.format(here=here, quoted=quoted)}


@pytest.mark.parametrize("words", [["start"], ["run", "--port"], ["--verbose"]])
def test_unknown_arguments_are_a_sentence(monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["agentsite", *words])

    assert main() == 2
    said = capsys.readouterr().err
    assert said.startswith(f"agentsite: unknown arguments {' '.join(words)!r}.")
    assert "`agentsite --help` lists the commands" in said


def test_help_names_commands_and_the_data_folder(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["agentsite", "--help"])

    assert main() == 0
    said = capsys.readouterr().out
    assert "agentsite manage COMMAND" in said
    assert "Data is in var," in said
