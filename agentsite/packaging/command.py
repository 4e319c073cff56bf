"""The console command `agentsite` of an installed wheel."""

import os
import re
import sys
from collections.abc import MutableMapping
from importlib.metadata import version
from urllib.parse import quote

from agentsite import layout, supervise

USAGE = """\
usage: agentsite [run]
       agentsite manage COMMAND ...
       agentsite --version

run      start the dashboard at http://localhost:8000; Ctrl-C stops it
manage   run a management command; `agentsite manage help` lists them

Data is in {data}, or where AGENTSITE_DATA says. PORT selects another port."""

SQLITE_URL = re.compile(r"(?:^|(?<==))sqlite:///\S+")
"""A value that is a URL, or the URL of one of several `name=URL`."""


def main() -> int:
    """Do what the arguments say; return the exit code."""
    match sys.argv[1:]:
        case [] | ["run"]:
            make_paths_absolute(os.environ)
            return supervise.main()
        case ["manage", *words]:
            from agentsite.packaging.manage import manage  # noqa: PLC0415  (keep `run` small)

            manage(words)
        case ["--version"]:
            print(f"Agentsite {version('agentsite')}")
        case ["-h" | "--help" | "help"]:
            print(USAGE.format(data=layout.get_default_data_folder()))
        case words:
            print(
                f"agentsite: unknown arguments {' '.join(words)!r}. "
                "`agentsite --help` lists the commands.",
                file=sys.stderr,
            )
            return 2
    return 0


def make_paths_absolute(variables: MutableMapping[str, str]) -> None:
    """Resolve relative paths, as the processes of a site start in another folder."""
    for name, value in list(variables.items()):
        if name == "PYTHONPATH":
            folders = filter(None, value.split(os.pathsep))
            variables[name] = os.pathsep.join(map(os.path.abspath, folders))
        elif name == "AGENTSITE_DATA" and value:
            variables[name] = os.path.abspath(os.path.expanduser(value))
        elif name.endswith("_FILE") and os.path.exists(value):
            variables[name] = os.path.abspath(value)
        elif name in ("DATABASE_URL", "AGENTSITE_SQL_CONNECTIONS"):
            variables[name] = SQLITE_URL.sub(make_sqlite_url_absolute, value)


def make_sqlite_url_absolute(found: re.Match[str]) -> str:
    """Return the URL with an absolute path; `sqlite:////` and `~` are absolute."""
    url = found[0]
    path = url.removeprefix("sqlite:///")
    if path.startswith(("/", "~")):
        return url
    return f"sqlite:///{quote(os.getcwd())}/{path}"


if __name__ == "__main__":
    sys.exit(main())
