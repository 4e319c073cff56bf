"""What a provider takes its key from."""

import pytest

from tests.make import make_provider, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "key"),
    [
        pytest.param("ANTHROPIC_API_KEY", "held", id="usual"),
        pytest.param("LOCAL_KEY", "held", id="looks-like-a-key"),
        pytest.param("HUB_TOKEN", "held", id="token"),
        pytest.param("MODEL_PASSWORD", "held", id="listed"),
        pytest.param("HOME_PASSWORD", "", id="unlisted"),
        pytest.param("SECRET_KEY", "", id="signs-sessions"),
        pytest.param("DATABASE_URL", "", id="database"),
        pytest.param("AGENTSITE_ENCRYPTION_KEY", "", id="ours"),
    ],
)
def test_a_superusers_reads_variables_that_hold_keys(monkeypatch, settings, name, key):
    settings.KEY_VARIABLES = ["MODEL_PASSWORD", "DATABASE_URL"]
    monkeypatch.setenv(name, "held")

    assert make_provider(make_user(is_superuser=True), key_env=name).key() == key


def test_nobody_elses_reads_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "held")

    assert make_provider(key_env="OPENAI_API_KEY").key() == ""


def test_a_key_can_be_in_a_file_that_is_read_each_time(monkeypatch, tmp_path):
    path = tmp_path / "key"
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(path))
    provider = make_provider(make_user(is_superuser=True), key_env="OPENAI_API_KEY")

    assert provider.key() == ""
    path.write_text("first\n")
    assert provider.key() == "first"
    path.write_text("rotated\n")
    assert provider.key() == "rotated"
