"""The environment of other programs that we start: nothing secret of ours."""

import os
from collections.abc import Iterable

INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")


def get_minimal_environment(variables: Iterable[str] = ()) -> dict[str, str]:
    """Return the inherited variables, and those named, as far as they are set."""
    names = (*INHERITED_VARIABLES, *variables)
    return {name: os.environ[name] for name in names if name in os.environ}
