"""Secrets kept as files."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count

from agentsite.secret_files import kept


def test_those_who_make_it_at_once_get_the_same_one(tmp_path):
    numbers = count()

    with ThreadPoolExecutor(16) as pool:
        wanted = [tmp_path / "key"] * 64
        got = set(
            pool.map(lambda path: kept(path, lambda: f"k{next(numbers)}"), wanted)
        )

    assert len(got) == 1


def test_the_file_is_for_its_owner_and_nothing_else_stays(tmp_path):
    kept(tmp_path / "new" / "key", lambda: "secret")

    (file,) = (tmp_path / "new").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_what_is_there_is_kept(tmp_path):
    (tmp_path / "key").write_text("old\n")

    assert kept(tmp_path / "key", lambda: "new") == "old"
