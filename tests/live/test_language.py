"""The language of live updates: that of each viewer."""

import asyncio

import polib
import pytest
from django.contrib.sessions.backends.db import SessionStore

from runs.language import SESSION_KEY
from runs.live import asgi, nav_updates
from runs.live.auth import Credentials, Person, read_language
from runs.live.batches import DraftText
from runs.live.page_renderer import PageRenderer
from runs.live.turn_renderer import TurnRenderer
from tests.live.hub_parts import running_hub
from tests.make import make_run, make_user, make_worker

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = {
    "Queued at position %(place)d": "排第 %(place)d 位",
    "No worker is running": "没有运行中的工作进程",
    "The model is writing": "模型正在输出",
}


@pytest.fixture(autouse=True)
def _catalog(settings, tmp_path, monkeypatch):
    """Translate a few texts, whatever the product's own catalog has."""
    monkeypatch.setattr(nav_updates, "POLL_SECONDS", 0.05)
    catalog = polib.POFile()
    catalog.metadata = {"Content-Type": "text/plain; charset=utf-8"}
    catalog.extend(polib.POEntry(msgid=m, msgstr=s) for m, s in CATALOG.items())
    folder = tmp_path / "zh_Hans" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    catalog.save_as_mofile(str(folder / "django.mo"))
    settings.LOCALE_PATHS = [tmp_path]


async def receive(viewer, text):
    """Return what the viewer is sent until `text` is in it."""
    sent = ""
    async with asyncio.timeout(60):
        async for message in viewer.messages():
            sent += message.decode()
            if text in sent:
                break
    return sent


@pytest.mark.usefixtures("redis_url")
def test_viewers_of_one_run_get_each_their_language():
    make_worker()
    run = make_run()

    async def scene():
        async with running_hub() as hub:
            english = hub.subscribe(TurnRenderer("en"), run.pk, after=-1)
            chinese = hub.subscribe(TurnRenderer("zh-hans"), run.pk, after=-1)
            return await asyncio.gather(
                receive(english, "Queued at position 1"), receive(chinese, "排第 1 位")
            )

    english, chinese = asyncio.run(scene())
    assert "排第" not in english
    assert "Queued at position" not in chinese


@pytest.mark.usefixtures("redis_url")
def test_drafts_and_headers_are_in_the_language_of_the_viewer():
    run = make_run(make_user("ann"), status="running")
    person = Person(run.owner_id, language="zh-hans")

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(
                PageRenderer("zh-hans"), run.pk, after=-1, person=person
            )
            header = hub.subscribe_person(Person(run.owner_id), in_inbox=False)
            await receive(viewer, "没有运行中的工作进程")
            viewer._channel.draft = DraftText(1, 0, 1, 0, "Hello", run.pk)
            viewer._channel.wake()
            return await asyncio.gather(
                receive(viewer, "模型正在输出"),
                receive(header, "No worker is running"),
            )

    draft, header = asyncio.run(scene())
    assert "The model is writing" not in draft
    assert "没有" not in header


def test_the_session_decides_before_the_browser():
    session = SessionStore()
    session[SESSION_KEY] = "zh-hans"
    session.save()

    chosen = Credentials(session=session.session_key, accept_language="en")
    assert read_language(chosen) == "zh-hans"
    assert read_language(Credentials(accept_language="zh-CN,zh;q=0.9")) == "zh-hans"
    assert read_language(Credentials(accept_language="xx")) == "en"


@pytest.mark.usefixtures("redis_url")
def test_streams_that_open_at_once_read_the_language_once(monkeypatch):
    reads = []
    monkeypatch.setattr(asgi, "read_language", lambda key: reads.append(key) or "en")

    async def scene():
        app = asgi.LiveApp()
        async with running_hub() as hub:
            app._hub = hub
            request = asgi.StreamRequest(PageRenderer, 1, 0, Credentials(session="x"))
            return await asyncio.gather(
                *(app._read_language(request) for _ in range(20))
            )

    assert asyncio.run(scene()) == ["en"] * 20
    assert len(reads) == 1
