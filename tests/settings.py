"""The product's settings for tests: an own data folder, and a fast password hash."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_memory = Path("/dev/shm")  # a test database that syncs to a disk takes minutes more
_data = tempfile.mkdtemp(
    prefix="agentsite-test-", dir=_memory if os.access(_memory, os.W_OK) else None
)
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["AGENTSITE_DATA"] = _data

from agentsite.settings import *  # noqa: E402, F403  # after the folder is named

WHITENOISE_AUTOREFRESH = True  # else each client walks through all static files
AXES_ENABLED = False  # tests sign in without a request; those of the limit enable it
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if EMBEDDED:  # noqa: F405
    # A file as in the product: threads share a memory database by another locking.
    DATABASES["default"]["TEST"] = {"NAME": f"{_data}/test.sqlite3"}  # noqa: F405
elif pool := DATABASES["default"].get("OPTIONS", {}).get("pool"):  # noqa: F405
    # A busy machine is slow, not wrong: the web's three seconds are for people.
    pool["timeout"] = 30
LOGGING["root"]["handlers"] = []  # noqa: F405  # pytest catches and shows the log
