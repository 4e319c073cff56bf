"""The form of the log."""

from textwrap import dedent

from tests.faults.site import run_python


def logged(tmp_path, code: str) -> list[str]:
    """Return the lines that a program of ours with this code logs."""
    start = "import django, logging, structlog; django.setup()\n"
    done = run_python(tmp_path / "data", start + dedent(code))
    return done.stderr.splitlines()


def test_an_exception_is_one_line(tmp_path):
    code = r"""
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logging.getLogger("x").exception("it broke")
        """

    (line,) = logged(tmp_path, code)

    assert 'level=error logger=x event="it broke" exception=' in line


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


def test_a_request_for_a_wrong_host_is_one_short_line(tmp_path):
    code = """
        from django.test import Client
        assert Client().get("/", headers={"Host": "evil" * 5_000}).status_code == 400
        """

    (line,) = logged(tmp_path, code)

    assert "level=warning logger=django.security.DisallowedHost" in line
    assert "Traceback" not in line
    assert len(line) < 500
