"""The form of the log."""

import json
import re
from textwrap import dedent
from typing import Any

import pytest

from agentsite.logs import redact_text
from tests.faults.site import run_python
from tests.support.empty_database import copy_empty_sqlite


def logged(tmp_path, code: str) -> list[str]:
    """Return the lines that a program of ours with this code logs."""
    start = "import django, logging, structlog; django.setup()\n"
    done = run_python(tmp_path / "data", start + dedent(code))
    return done.stderr.splitlines()


@pytest.mark.slow
def test_an_exception_is_one_line(tmp_path):
    code = r"""
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logging.getLogger("x").exception("it broke")
        """

    (line,) = logged(tmp_path, code)

    assert 'level=error logger=x event="it broke" exception=' in line


@pytest.mark.slow
def test_fields_become_words(tmp_path):
    code = "structlog.get_logger('runs.x').info('run started', run=7)"

    (line,) = logged(tmp_path, code)

    assert line.endswith('level=info logger=runs.x event="run started" run=7')


def test_secret_paths_are_redacted(tmp_path):
    code = """
        told = "Forbidden (CSRF cookie not set.): %s"
        logging.getLogger("django.security.csrf").warning(told, "/login/s3-Cret_/")
        structlog.get_logger("x").error("Internal Server Error: /shared/s3-Cret_/")
        """

    first, second = logged(tmp_path, code)

    assert first.endswith('event="Forbidden (CSRF cookie not set.): /login/…/"')
    assert second.endswith('event="Internal Server Error: /shared/…/"')


@pytest.mark.slow
def test_a_request_for_a_wrong_host_is_one_short_line(tmp_path):
    code = """
        from django.test import Client
        assert Client().get("/", headers={"Host": "evil" * 5_000}).status_code == 400
        """

    (line,) = logged(tmp_path, code)

    assert "level=warning logger=django.security.DisallowedHost" in line
    assert "Traceback" not in line
    assert len(line) < 500


def objects(tmp_path, monkeypatch, code: str) -> list[dict[str, Any]]:
    """Return the lines that a program of ours logs as JSON."""
    monkeypatch.setenv("AGENTSITE_LOG_FORMAT", "json")
    return [json.loads(line) for line in logged(tmp_path, code)]


@pytest.mark.slow
def test_json_is_one_object_per_line(tmp_path, monkeypatch):
    code = r"""
        try:
            raise ValueError("two\nlines \ud800")
        except ValueError:
            logging.getLogger("x").exception("it %s", "broke\n")
        structlog.get_logger("y").info("run started", run=7, odd={1: object})
        """

    first, second = objects(tmp_path, monkeypatch, code)

    assert list(first)[:4] == ["timestamp", "level", "logger", "event"]
    assert (first["level"], first["logger"]) == ("error", "x")
    assert first["event"] == "it broke\n"
    assert "Traceback" in first["exception"]
    assert (second["event"], second["run"]) == ("run started", 7)


@pytest.mark.slow
def test_what_python_would_print_is_json_too(tmp_path, monkeypatch):
    code = """
        import threading, warnings
        warnings.warn("old")
        thread = threading.Thread(target=lambda: 1 / 0, name="t")
        thread.start()
        thread.join()
        """

    warned, died = objects(tmp_path, monkeypatch, code)

    assert "old" in warned["event"]
    assert died["event"] == "thread t"
    assert "ZeroDivisionError" in died["exception"]


@pytest.mark.slow
def test_lines_of_a_request_name_it_and_its_user(tmp_path, monkeypatch):
    code = """
        from django.contrib.auth.models import User
        from django.test import Client
        from django.urls import path
        from agentsite import urls
        from runs.models import Run
        def view(request):
            logging.getLogger("x").info("seen")
            raise OSError("broken")
        urls.urlpatterns.append(path("broken/", view))
        client = Client(raise_request_exception=False, SERVER_NAME="localhost")
        client.force_login(User.objects.create(id=41, username="ann"))
        for given in ("from-proxy.1", "no good id"):
            response = client.get("/broken/", headers={"X-Request-ID": given})
            logging.getLogger("x").warning(response.headers["X-Request-ID"])
        """

    copy_empty_sqlite(tmp_path / "data")
    lines = objects(tmp_path, monkeypatch, code)
    lines = [line for line in lines if line["logger"] in ("x", "django.request")]
    seen, failed, given, seen_again, _, made = lines

    assert seen["request"] == failed["request"] == given["event"] == "from-proxy.1"
    assert seen["user"] == failed["user"] == 41
    assert "OSError" in failed["exception"]
    assert "request" not in given
    assert seen_again["request"] == made["event"]
    assert re.fullmatch("[0-9a-f]{32}", made["event"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "GET https://ann:s3cr3t@host/x", "GET https://ann:…@host/x", id="url"
        ),
        pytest.param("redis://:s3cr3t@h:6379/0", "redis://:…@h:6379/0", id="redis"),
        pytest.param("/x?api_key=abc&n=1", "/x?api_key=…&n=1", id="query"),
        pytest.param(
            "Authorization: Bearer abc.def-123", "Authorization: Bearer …", id="header"
        ),
        pytest.param("token as_0123456789abcdefgh.", "token as_….", id="our-token"),
        pytest.param(
            "/?page=2&code=x#y at 10:30", "/?page=2&code=… at 10:30", id="code"
        ),
        pytest.param("/approve/s3-Cret_/", "/approve/…/", id="approval-link"),
        pytest.param("/in/s3-Cret_s3-Cret_s3-Cret_/", "/in/…/", id="incoming-webhook"),
        pytest.param("/usr/in/file.txt and /in/x/", None, id="other-folders"),
        pytest.param("run 7 at http://host:8000/a@b", None, id="nothing"),
        pytest.param("the key of the basic task is x", None, id="words"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text, shown):
    assert redact_text(text) == (shown or text)


def test_secrets_of_the_settings_are_hidden_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTSITE_METRICS_TOKEN", "canary-of-metrics")
    code = """
        from django.conf import settings
        secret = settings.SECRET_KEY
        structlog.get_logger("x").info(secret, a=f"<{secret}>", b=["canary-of-metrics"])
        try:
            raise ValueError(secret)
        except ValueError:
            logging.getLogger("x").exception("key %s", settings.ENCRYPTION_KEYS[0])
        """

    lines = objects(tmp_path, monkeypatch, code)

    key = (tmp_path / "data" / "encryption_keys").read_text().strip()
    secret = (tmp_path / "data" / "secret_key").read_text().strip()
    text = json.dumps(lines)
    assert not any(one in text for one in (key, secret, "canary"))
    assert (lines[0]["event"], lines[0]["a"]) == ("…", "<…>")
