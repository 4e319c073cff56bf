"""Create an environment: `python3 -m agentsite.install LOCK [FOLDER] [pip options]`.

The folder is `.venv` by default. Standard library only, and parsable by old Pythons, so
that they get a clear message.
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
NEWER_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")


def main() -> None:
    """Create or update the environment; write a stamp, so that this is done once."""
    lock = ROOT / sys.argv[1]
    folder = ROOT / (sys.argv[2] if len(sys.argv) > 2 else ".venv")
    stamp = folder / f"{lock.stem}.made"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == digest and is_venv_usable(folder)):
        switch_to_newer_python()
        if not is_venv_usable(folder):
            create_venv(folder)
        install_packages(lock, folder, sys.argv[3:])
    stamp.write_text(digest)


def switch_to_newer_python() -> None:
    """Continue with a newer Python from PATH if this one is too old."""
    if sys.version_info[:2] >= (3, 11):
        return
    for name in NEWER_PYTHONS:
        found = shutil.which(name)
        if found:
            os.execv(found, [found, "-m", "agentsite.install", *sys.argv[1:]])
    sys.exit(
        "Agentsite needs Python 3.11 or newer; this is "
        + sys.version.split()[0]
        + ". Install one, or set its path: make run PYTHON=/path/to/python3"
    )


def is_venv_usable(folder: Path) -> bool:
    """Whether the environment has a working pip."""
    python = folder / "bin" / "python"
    try:
        answer = subprocess.run([python, "-c", "import pip"], capture_output=True)
    except OSError:
        return False
    return answer.returncode == 0


def create_venv(folder: Path) -> None:
    """Create an empty environment; name the system package if it is missing."""
    name = folder.relative_to(ROOT)
    print(f"Creating the Python environment in {name} ...", flush=True)
    try:
        venv.create(folder, clear=True, with_pip=True)
    except (subprocess.CalledProcessError, ImportError):
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit(
            "The Python module venv is incomplete on this machine. Install it "
            "(Debian, Ubuntu: apt-get install python3-venv), then try again."
        )
    except OSError as error:
        sys.exit(f"The folder {folder} cannot be created: {error.strerror}.")


def install_packages(lock: Path, folder: Path, options: "list[str]") -> None:
    """Install exactly the locked packages, and print progress.

    Dependencies are not resolved, as the lock is complete: a pip that resolves extras
    refuses it on the day on which one of its packages gets a newer release.
    """
    total = sum("==" in line for line in lock.read_text().splitlines())
    print(f"Installing {total} packages from {lock.name} ...", flush=True)
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--no-input", "--progress-bar", "off", "--require-hashes", "--no-deps"]
    with subprocess.Popen(
        [*command, *options, "-r", str(lock)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as pip:
        last = print_install_progress(pip, total)
    if pip.returncode:
        print("".join(last))
        sys.exit("The packages could not be installed. See the lines above.")


def print_install_progress(pip: "subprocess.Popen[str]", total: int) -> "deque[str]":
    """Print progress; return the last lines."""
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
