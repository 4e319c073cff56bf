"""Secrets kept as files."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count

from agentsite.secret_files import read_or_create_secret


def test_concurrent_creators_get_the_same_secret(tmp_path):
    numbers = count()

    with ThreadPoolExecutor(16) as pool:
        wanted = [tmp_path / "key"] * 64
        got = set(
            pool.map(
                lambda path: read_or_create_secret(path, lambda: f"k{next(numbers)}"),
                wanted,
            )
        )

    assert len(got) == 1


def test_the_file_is_0600_and_no_draft_stays(tmp_path):
    read_or_create_secret(tmp_path / "new" / "key", lambda: "secret")

    (file,) = (tmp_path / "new").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_an_existing_secret_is_kept(tmp_path):
    (tmp_path / "key").write_text("old\n")

    assert read_or_create_secret(tmp_path / "key", lambda: "new") == "old"
