"""Threads of a worker come and go with its runs."""

import resource
import threading

import pytest

from agentsite.worker.threads import ElasticThreads, raise_file_limit
from tests.support.timing import wait_until


@pytest.fixture
def threads():
    pool = ElasticThreads()
    yield pool
    pool.shutdown()


def test_an_idle_thread_gets_the_next_job(threads):
    first = threads.submit(threading.get_ident).result()
    wait_until(lambda: threads.idle)

    assert threads.submit(threading.get_ident).result() == first


def test_a_job_never_waits_for_another_one(threads):
    release = threading.Event()
    waiting = [threads.submit(release.wait) for _ in range(60)]

    assert threads.submit(str, 7).result(timeout=30) == "7"
    release.set()
    assert all(job.result() for job in waiting)


def test_a_thread_without_work_ends():
    threads, release = ElasticThreads(idle_seconds=0.01), threading.Event()
    for job in [threads.submit(release.wait) for _ in range(5)]:
        release.set()
        job.result()

    wait_until(lambda: not threads.threads)
    assert threads.submit(str, 7).result() == "7"


def test_an_error_reaches_whoever_waits_for_the_result(threads):
    with pytest.raises(ValueError, match="invalid literal"):
        threads.submit(int, "x").result()


def test_a_pool_ends_with_its_last_job():
    threads, done = ElasticThreads(), threading.Event()
    threads.submit(done.set)
    threads.shutdown()

    assert done.is_set()
    assert not threads.threads


def test_a_worker_may_open_the_files_of_its_waiting_runs():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
        raise_file_limit(500)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft == min(500 * 4 + 512, hard)
        raise_file_limit(1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
