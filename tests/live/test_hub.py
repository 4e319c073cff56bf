"""The live hub: nothing is missed, nothing comes twice."""

import asyncio
import threading
import time
from functools import partial
from html import escape

import pytest
import redis

from runs import redis_streams as stream
from runs.live import hub as hub_module
from runs.live.api_renderer import ApiRenderer
from runs.live.batches import DraftText
from runs.live.page_renderer import PageRenderer
from runs.redis_streams import TextDelta
from tests.live.hub_parts import (
    Browser,
    commit_attempt,
    commit_end,
    commit_outcome,
    commit_reply,
    events_in,
    running_hub,
    seen_until,
    work,
)
from tests.live.text_deltas import send_text_delta
from tests.make import make_run
from tests.support.threads import in_thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis_url"),
]


@pytest.fixture(autouse=True)
def _no_drafts_of_runs_before(redis_url):
    """Forget what other tests have sent: their runs had the same numbers."""
    with redis.Redis.from_url(redis_url) as client:
        client.delete(stream.TEXT_DELTAS, stream.NOTICES)


def never(messages):
    return False


async def browse(viewer, browser=None, *, until=lambda browser: False):
    """Let a browser take a stream to its end."""
    browser = browser or Browser()
    async with asyncio.timeout(60):
        async for message in viewer.messages():
            browser.take(message)
            if until(browser):
                break
    return browser


def watch_page(run, *, rounds, after=0, notice=True):
    """Watch a run from `after` while a worker commits; return the browser."""

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=after)
            watching = asyncio.create_task(browse(viewer))
            await in_thread(work, run, rounds=rounds, notice=notice)
            return await watching

    return asyncio.run(scene())


def is_complete(browser, *, rounds):
    """Whether each row is there once, in order, in its last state."""
    return (
        [number for number, _ in browser.rows] == list(range(1, rounds * 2 + 1))
        and len(set(browser.appended)) == len(browser.appended)
        and all("live" not in html for _, html in browser.rows)
        and browser.is_over
    )


def test_a_viewer_sees_every_row_once_and_the_end():
    browser = watch_page(make_run(status="running"), rounds=30)

    assert is_complete(browser, rounds=30)


def test_nothing_is_missed_when_every_notice_is_dropped(monkeypatch):
    monkeypatch.setattr(hub_module, "POLL_SECONDS", 0.2)
    browser = watch_page(make_run(status="running"), rounds=30, notice=False)

    assert is_complete(browser, rounds=30)


def test_nothing_is_missed_when_redis_is_wiped_again_and_again(redis_url):
    run = make_run(status="running")

    def work_and_wipe():
        with redis.Redis.from_url(redis_url) as client:
            for _ in range(20):
                commit_reply(run)
                client.flushall()
                commit_outcome(run)
            client.flushall()
            commit_end(run)

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=0)
            watching = asyncio.create_task(browse(viewer))
            await in_thread(work_and_wipe)
            return await watching

    assert is_complete(asyncio.run(scene()), rounds=20)


def test_a_restarted_web_process_goes_on_where_the_page_was():
    run = make_run(status="running")
    browser = Browser()

    async def until_six(hub):
        viewer = hub.subscribe(PageRenderer(), run.pk, after=browser.last_id)
        await browse(viewer, browser, until=lambda b: len(b.rows) >= 6)

    async def scene():
        async with running_hub() as hub:
            watching = asyncio.create_task(until_six(hub))
            for _ in range(3):
                await in_thread(commit_reply, run)
                await in_thread(commit_outcome, run)
            await watching
        await in_thread(work, run, rounds=7)
        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=browser.last_id)
            await browse(viewer, browser)

    asyncio.run(scene())

    assert is_complete(browser, rounds=10)


def test_joining_late_gives_what_came_after_the_page():
    run = make_run(status="running")
    commit_reply(run)
    seen = commit_outcome(run)
    browser = watch_page(run, rounds=5, after=seen)

    assert [number for number, _ in browser.rows] == list(range(3, 13))


def test_many_viewers_share_one_reading():
    run = make_run(status="running")
    reads = []

    class Counting(PageRenderer):
        def read_batches(self, wanted, memories):
            reads.append(wanted)
            return super().read_batches(wanted, memories)

    async def scene():
        form = Counting()
        async with running_hub() as hub:
            viewers = [hub.subscribe(form, run.pk, after=0) for _ in range(200)]
            watching = [asyncio.create_task(browse(viewer)) for viewer in viewers]
            await in_thread(work, run, rounds=5)
            return await asyncio.gather(*watching)

    browsers = asyncio.run(scene())

    assert all(is_complete(browser, rounds=5) for browser in browsers)
    assert len(reads) <= 15


@pytest.mark.slow
def test_a_slow_viewer_reads_its_rows_instead_of_growing_a_queue(monkeypatch):
    monkeypatch.setattr(hub_module, "MAX_BATCHES", 2)
    run = make_run(status="running")
    browser = Browser()

    async def dawdle(viewer):
        async for message in viewer.messages():
            browser.take(message)
            await asyncio.sleep(0.2)

    async def scene():
        async with running_hub() as hub:
            form = PageRenderer()
            slow = hub.subscribe(form, run.pk, after=0)
            quick = hub.subscribe(form, run.pk, after=0)
            watching = asyncio.gather(dawdle(slow), browse(quick))
            await in_thread(work, run, rounds=40)
            kept = len(slow._channel.batches)
            await watching
            return kept

    assert asyncio.run(scene()) <= 2
    assert is_complete(browser, rounds=40)


def test_programs_get_each_step_and_the_end():
    run = make_run(status="running")

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(ApiRenderer(), run.pk, after=0)
            watching = asyncio.create_task(seen_until(viewer, never))
            await in_thread(work, run, rounds=10)
            return await watching

    events = events_in(asyncio.run(scene()))
    done = [
        shape["index"]
        for name, shape in events
        if name == "step" and shape["status"] == "succeeded"
    ]

    assert done == list(range(10))
    assert [name for name, _ in events[-2:]] == ["run", "end"]
    assert events[-2][1]["output"] == "**Done**"


def test_a_long_run_comes_in_several_batches(monkeypatch):
    monkeypatch.setattr("runs.live.changes.MAX_ROWS", 7)
    run = make_run(status="running")
    work(run, rounds=20, notice=False)

    async def scene():
        async with running_hub() as hub:
            return await browse(hub.subscribe(PageRenderer(), run.pk, after=0))

    assert is_complete(asyncio.run(scene()), rounds=20)


def test_what_arrives_while_earlier_text_is_asked_for_is_not_lost():
    run = make_run(status="running")

    def piece(at, text):
        return TextDelta(run.pk, fence=run.fence, number=0, attempt=1, at=at, text=text)

    async def scene():
        async with running_hub() as hub:

            async def drafts_of(run_id):
                asked.set()
                await received.wait()
                return [piece(0, "# ")]

            asked, received = asyncio.Event(), asyncio.Event()
            hub._listener.recent_drafts = drafts_of
            viewer = hub.subscribe(PageRenderer(), run.pk, after=run.seq)
            await asked.wait()
            hub.add_draft(piece(2, "Bei"))
            received.set()
            while hub._replays:
                await asyncio.sleep(0)
            hub.add_draft(piece(5, "jing"))
            return viewer._channel.draft

    draft = asyncio.run(scene())

    assert (draft.start, draft.text) == (0, "# Beijing")


def draft_scene(run, send, *, until, before=lambda: None):
    """Return what a page is sent while `send` writes drafts, until some text came.

    `send` is given a function that waits until the page has been sent a text.
    """
    messages: list[bytes] = []
    news = threading.Condition()

    def sees(text):
        with news:
            if not news.wait_for(lambda: text in b"".join(messages), 60):
                raise AssertionError(f"{text!r} was not sent")

    async def watch(viewer):
        async with asyncio.timeout(90):
            async for message in viewer.messages():
                with news:
                    messages.append(message)
                    news.notify_all()
                if until in b"".join(messages):
                    break

    async def scene():
        before()
        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=run.seq)
            watching = asyncio.create_task(watch(viewer))
            async with asyncio.timeout(30):
                await hub._listener._is_listening.wait()
                while not viewer._has_joined or hub._replays:
                    await asyncio.sleep(0.01)
            await in_thread(send, sees)
            done, _ = await asyncio.wait([watching], timeout=60)
            if not done:
                watching.cancel()
                raise AssertionError(f"{until!r} was not sent")
        return b"".join(messages).decode()

    return asyncio.run(scene())


def test_text_is_seen_while_the_model_writes():
    run = make_run(status="running")

    def send(sees):
        writer = stream.TextDeltaWriter(run.pk, fence=1, number=0, attempt=1)
        for word in ("Perhaps ", "quite ", "<sunny>"):
            writer.write(word)
            sees(escape(word.strip()).encode())

    text = draft_scene(run, send, until=b"&lt;sunny&gt;")

    opened = '<div class="open-block" id="draft-text-open"><p dir="auto">Perhaps</p>'
    assert f'hx-target="#draft-text" hx-swap="innerHTML">{opened}' in text
    changed = opened.replace("Perhaps", "Perhaps quite")
    assert f'hx-target="#draft-text-open" hx-swap="outerHTML">{changed}' in text
    assert "id:" not in text.split("#draft-text", 1)[1]


def test_who_joins_late_gets_the_draft_so_far(redis_url):
    run = make_run(status="running")

    def earlier():
        for at, piece in enumerate("abc"):
            send_text_delta(run.pk, fence=1, number=0, attempt=1, at=at, text=piece)
        until = time.monotonic() + 60
        with redis.Redis.from_url(redis_url, decode_responses=True) as client:
            while client.xlen(stream.TEXT_DELTAS) < 3:
                if time.monotonic() > until:
                    raise AssertionError("Redis did not get the text")
                time.sleep(0.01)

    def send(sees):
        send_text_delta(run.pk, fence=1, number=0, attempt=1, at=3, text="d")

    text = draft_scene(run, send, until=b"d</p>", before=earlier)

    assert 'id="draft-text-open"><p dir="auto">abc' in text


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param({"attempt": 2, "at": 0}, id="new attempt"),
        pytest.param({"fence": 2, "at": 0}, id="new fence"),
        pytest.param({"at": 50}, id="gap"),
    ],
)
def test_a_draft_begins_anew(piece):
    run = make_run(status="running")
    usual = {"fence": 1, "number": 0, "attempt": 1}

    def send(sees):
        send_text_delta(run.pk, **usual, at=0, text="old")
        sees(b"old<")
        send_text_delta(run.pk, **{**usual, **piece}, text="new")

    text = draft_scene(run, send, until=b"new<")

    missing = "<p>…</p>" if piece["at"] else ""
    opened = '<div class="open-block" id="draft-text-open"><p dir="auto">new</p>'
    assert f'hx-swap="innerHTML">{missing}{opened}' in text


def test_drafts_of_a_stored_reply_are_dropped():
    run = make_run(status="running")

    def send(sees):
        commit_reply(run)
        sees(b"run-step-1")
        send_text_delta(run.pk, fence=1, number=0, attempt=1, at=0, text="stale")
        send_text_delta(run.pk, fence=1, number=1, attempt=1, at=0, text="next")

    text = draft_scene(run, send, until=b"next<")

    assert "stale" not in text


def test_a_sign_of_life_is_reported_without_a_seq(monkeypatch):
    monkeypatch.setattr(hub_module, "POLL_SECONDS", 0.1)
    run = make_run(status="running")

    def send(sees):
        sees(b"run-progress")
        run.lease_until = run.lease_until.replace(year=2031)
        run.save()

    text = draft_scene(run, send, until=b'datetime="2031')

    assert "last heartbeat" in text
    assert text.rindex("run-progress") > text.rindex("id: ")


def test_a_sign_of_life_leaves_what_the_model_writes_as_it_stands(monkeypatch):
    monkeypatch.setattr(hub_module, "POLL_SECONDS", 0.1)
    run = make_run(status="running")

    def send(sees):
        sees(b"run-progress")
        stream.TextDeltaWriter(run.pk, fence=1, number=0, attempt=1).write("Perhaps ")
        sees(b"Perhaps<")
        run.lease_until = run.lease_until.replace(year=2031)
        run.save()

    text = draft_scene(run, send, until=b'datetime="2031')
    last = text.strip().split("\n\n")[-1]

    assert 'datetime="2031' in last
    assert ">The model is writing<" in last
    assert ">The model is writing<" in last
    assert "Waiting for the model<" not in last
    assert text.count("Perhaps<") == 1


def test_streams_end_when_the_server_stops():
    run = make_run(status="running")

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=0)
            watching = asyncio.create_task(browse(viewer))
            while not viewer._has_joined:
                await asyncio.sleep(0.01)
            hub.stop_streams()
            await asyncio.wait_for(watching, 30)

    asyncio.run(scene())


@pytest.mark.parametrize("does", ["read_batches", "render_heads"])
def test_a_run_that_cannot_be_shown_does_not_stop_the_others(monkeypatch, does):
    monkeypatch.setattr(hub_module, "POLL_SECONDS", 0.1)
    bad, good = make_run(status="running"), make_run(status="running")
    for run in (bad, good):
        commit_reply(run, notice=False)
    form = PageRenderer()
    real, first = getattr(form, does), {bad.pk: 0}

    def stumble(wanted, memories):
        if bad.pk in wanted and wanted != first:
            raise RecursionError
        return real(wanted, memories)

    monkeypatch.setattr(form, does, stumble)

    async def scene():
        async with running_hub() as hub, asyncio.timeout(60):
            viewers = [hub.subscribe(form, run.pk, after=0) for run in (bad, good)]
            tasks = [asyncio.create_task(browse(one)) for one in viewers]
            while not all(viewer._has_joined for viewer in viewers):
                await asyncio.sleep(0.01)
            for run in (bad, good):
                await hub.run_in_thread(partial(commit_outcome, run, notice=False))
            while not viewers[1]._channel.head:
                await asyncio.sleep(0.01)
            await hub.run_in_thread(partial(commit_end, good, notice=False))
            await tasks[1]
            tasks[0].cancel()

    asyncio.run(scene())


def test_failed_attempts_are_reported_as_they_happen_and_stay_at_the_end():
    run = make_run(status="running")
    message = []

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=0)
            for attempt in (1, 2):
                await in_thread(commit_attempt, run, attempt, retry_in=600.0)
                words = f"Attempt {attempt + 1} of 5 in".encode()
                message.append(
                    await seen_until(viewer, lambda seen, w=words: w in b"".join(seen))
                )
            await in_thread(commit_attempt, run, 3, retry_in=None)
            await in_thread(commit_end, run, status="failed")
            return await browse(viewer)

    browser = asyncio.run(scene())

    assert b"Last error: The server answered 500." in b"".join(message[0])
    assert browser.is_over
    [(number, row)] = browser.rows
    assert number == 1
    assert "3 failed attempts" in row


def test_a_draft_makes_the_row_and_the_header_say_the_same():
    text = PageRenderer().render_draft(DraftText(1, 0, 1, 0, "Hello"), None).decode()

    for place, words in (
        ("progress:not(:has(.need)) #run-activity", "The model is writing"),
        ("now:has(.pulse) b", "The model is writing"),
    ):
        assert f'hx-target="#run-{place}" hx-swap="innerHTML">{words}<' in text


def test_others_are_served_while_a_long_text_is_rendered():
    run = make_run(status="running")
    draft = DraftText(1, 0, 1, 0, "- item\n" * 4_000, run.pk)

    async def scene():
        turns = 0

        async def take_turns():
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += bool(draft.rendering.blocks)

        async with running_hub() as hub:
            viewer = hub.subscribe(PageRenderer(), run.pk, after=run.seq)
            other = asyncio.create_task(take_turns())
            async with asyncio.timeout(60):
                while not viewer._has_joined:
                    await anext(viewer.messages())
                while hub._replays:
                    await asyncio.sleep(0)
                viewer._channel.draft = draft
                async for message in viewer.messages():
                    if b"<li>item</li>" in message:
                        break
            other.cancel()
        return turns

    assert asyncio.run(scene()) >= 5
