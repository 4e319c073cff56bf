"""Make `.venv` from a lock file: `python3 -m agentsite.install requirements.lock`.

Standard library only, and readable by old Pythons, so that they can be told apart.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv"
PYTHON = HOME / "bin" / "python"
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")


def main() -> None:
    """Make or complete the environment; leave a stamp, so that this is done once."""
    lock = ROOT / sys.argv[1]
    stamp = HOME / f"{lock.stem}.made"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == digest and works()):
        use_new_enough_python()
        if not works():
            make_environment()
        install(lock)
    stamp.write_text(digest)


def use_new_enough_python() -> None:
    """Go on with a newer Python from PATH where this one is too old."""
    if sys.version_info[:2] >= (3, 11):
        return
    for name in NEWER:
        found = shutil.which(name)
        if found:
            os.execv(found, [found, "-m", "agentsite.install", *sys.argv[1:]])
    sys.exit(
        "Agentsite needs Python 3.11 or newer; this is "
        + sys.version.split()[0]
        + ". Install one, or name it: make run PYTHON=/path/to/python3"
    )


def works() -> bool:
    """Whether the environment is whole enough to install into."""
    try:
        answer = subprocess.run([PYTHON, "-c", "import pip"], capture_output=True)
    except OSError:
        return False
    return answer.returncode == 0


def make_environment() -> None:
    """Make an empty environment; name the package some systems leave out."""
    print(f"Making the Python environment in {HOME.name} ...", flush=True)
    try:
        venv.create(HOME, clear=True, with_pip=True)
    except (subprocess.CalledProcessError, ImportError):
        shutil.rmtree(HOME, ignore_errors=True)
        sys.exit(
            "Python's module venv is not complete on this machine. Install it "
            "(Debian, Ubuntu: apt-get install python3-venv), then try again."
        )
    except OSError as error:
        sys.exit(f"The folder {HOME} cannot be made: {error.strerror}.")


def install(lock: Path) -> None:
    """Install exactly what the lock names; count along."""
    total = sum("==" in line for line in lock.read_text().splitlines())
    print(f"Installing {total} packages from {lock.name} ...", flush=True)
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--no-input", "--progress-bar", "off", "--require-hashes", "-r"]
    with subprocess.Popen(
        [*command, str(lock)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as pip:
        last = follow(pip, total)
    if pip.returncode:
        print("".join(last))
        sys.exit("The packages could not be installed; the lines above say why.")


def follow(pip: "subprocess.Popen[str]", total: int) -> "deque[str]":
    """Show how far it is; return the last lines."""
    last: deque[str] = deque(maxlen=15)
    count = 0
    for line in pip.stdout or ():
        last.append(line)
        if line.startswith(("Collecting ", "Requirement already satisfied")):
            count += 1
            if count % 10 == 0:
                print(f"  {count} of {total}", flush=True)
        if line.startswith("Installing collected"):
            print("  unpacking ...", flush=True)
    return last


if __name__ == "__main__":
    main()
