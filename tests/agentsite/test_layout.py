"""Where data goes, in a clone and installed from a wheel."""

from pathlib import Path

import pytest

from agentsite import layout
from agentsite.layout import (
    ROOT,
    get_default_data_folder,
    resolve_data_folder,
)


@pytest.fixture
def in_wheel(monkeypatch):
    monkeypatch.setattr(layout, "IS_INSTALLED", True)
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)


def test_a_clone_has_its_data_in_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert resolve_data_folder(get_default_data_folder()) == ROOT / "var"


@pytest.mark.parametrize(
    ("platform", "xdg", "folder"),
    [
        pytest.param("linux", "", "/home/ann/.local/share/agentsite", id="linux"),
        pytest.param("linux", "/data", "/data/agentsite", id="xdg"),
        pytest.param(
            "darwin", "", "/home/ann/Library/Application Support/agentsite", id="macos"
        ),
    ],
)
def test_a_wheel_has_its_data_in_a_folder_of_the_user(
    in_wheel, monkeypatch, platform, xdg, folder
):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("XDG_DATA_HOME", xdg)

    assert resolve_data_folder(get_default_data_folder()) == Path(folder)


def test_a_relative_path_starts_where_a_wheel_is_started(
    in_wheel, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    assert resolve_data_folder(Path("here")) == tmp_path / "here"


def test_a_user_without_a_home_folder_is_a_sentence(in_wheel, monkeypatch):
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as it then does

    with pytest.raises(SystemExit, match="no home folder. Set AGENTSITE_DATA"):
        resolve_data_folder(get_default_data_folder())
