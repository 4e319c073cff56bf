"""What the stream of turns sends."""

import asyncio

import pytest

from runs.live.batches import DRAFT_FRAME, DraftText, RendererState
from runs.live.turn_renderer import TurnRenderer, merge_messages, render_turns_end
from runs.models import Run
from runs.store.database_clock import db_time_from_now
from tests.make import make_call, make_run, make_step, make_worker

pytestmark = pytest.mark.django_db


def read(run, after=-1):
    """Return the batch and the message after a seq."""
    form = TurnRenderer()
    (batch,) = form.read_batches({run.pk: after}, {run.pk: RendererState()})
    return batch, form.render_message(batch, after).decode()


def test_a_turn_is_sent_whole_with_its_steps_and_its_answer():
    run = make_run(status="succeeded", output="It is **4**.")
    make_step(run, tool="calculator")

    batch, message = read(run)

    assert batch.is_over
    assert f'hx-target="#turn-answer-{run.pk}"' in message
    assert "calculator" in message
    assert "<strong>4</strong>" in message


def test_what_was_seen_is_not_sent_again():
    run = make_run(status="running")
    make_call(run)

    _, message = read(run, after=run.seq)

    assert "turn-answer" not in message


def test_hostile_text_stays_text():
    run = make_run(status="failed", error_message="<script>alert(1)</script>")
    make_step(run, observation="<img src=x onerror=alert(1)>")

    _, message = read(run)

    assert "<script" not in message
    assert "<img" not in message


def test_a_viewer_is_sent_a_finished_block_once():
    draft = DraftText(fence=1, number=0, attempt=1, start=0, text="one", run_id=7)
    form = TurnRenderer()
    messages = [form.render_draft(draft, None).decode()]
    for text in ("one\n\ntwo", "one\n\ntwo\n", "one\n\ntwo\n3"):
        sent, draft.text = len(draft.text), text
        messages.append(form.render_draft(draft, sent).decode())

    assert [message.count("one</p>") for message in messages] == [1, 1, 1, 0]
    assert "two" in messages[3]
    assert form.render_draft(draft, len(draft.text)) == b""


@pytest.mark.slow
def test_a_viewer_is_sent_each_item_of_a_long_list_once():
    draft = DraftText(fence=1, number=0, attempt=1, start=0, text="", run_id=7)
    form = TurnRenderer()
    late, parts = b"", [form.render_draft(draft, None)]
    for count in range(1, 601):
        sent, draft.text = len(draft.text), "- item\n" * count
        parts.append(form.render_draft(draft, sent))
        late = form.render_draft(draft, None)

    items = b'hx-target="#turn-draft-7-items-0" hx-swap="beforeend"><li>item</li>'
    assert late.count(b"<li>item</li>") == 600
    assert sum(part.count(items) for part in parts) > 250
    assert max(len(part) for part in parts[-50:]) < 500


def test_the_draft_goes_to_its_own_run():
    draft = DraftText(fence=1, number=0, attempt=1, start=0, text="a<b", run_id=7)

    message = TurnRenderer().render_draft(draft, None).decode()

    assert 'hx-target="#turn-draft-7"' in message
    assert "a&lt;b" in message


def test_a_turn_says_that_the_model_is_writing_once_it_does():
    draft = DraftText(fence=1, number=0, attempt=1, start=0, text="a", run_id=7)
    form = TurnRenderer()
    first = form.render_draft(draft, None).decode()
    draft.text = "a b"

    assert "The model is writing" in first
    assert "The model is writing" not in form.render_draft(draft, 1).decode()


def test_a_queued_turn_is_reported_anew_when_its_place_changes():
    make_worker()
    first, second = make_run(), make_run()
    form, memories = TurnRenderer(), {second.pk: RendererState()}

    assert form.find_stale_runs([second.pk], memories) == [second.pk]
    assert form.find_stale_runs([second.pk], memories) == []
    first.delete()
    assert form.find_stale_runs([second.pk], memories) == [second.pk]
    assert (
        b"Queued at position 1"
        in form.render_heads([second.pk], memories)[second.pk][DRAFT_FRAME]
    )


def test_a_running_turn_says_that_it_lost_its_worker_and_has_one_again():
    run = make_run(status="running", lease_until=db_time_from_now(30))
    form, memories = TurnRenderer(), {run.pk: RendererState()}

    def reread():
        stale = form.find_stale_runs([run.pk], memories)
        again = form.find_stale_runs([run.pk], memories)
        heads = form.render_heads([run.pk], memories)
        turn = heads.get(run.pk, {}).get(DRAFT_FRAME, b"").decode()
        return stale == [run.pk], again == [run.pk], turn

    assert reread() == (False, False, "")
    Run.objects.update(lease_until=db_time_from_now(-1))
    is_stale, is_again, lost = reread()
    assert (is_stale, is_again) == (True, False)
    assert "No heartbeat, and no worker is running to take over" in lost
    assert "caret" not in lost
    make_worker()
    assert "No heartbeat, another worker will take over" in reread()[2]
    Run.objects.update(lease_until=db_time_from_now(30))
    is_stale, _, found = reread()
    assert is_stale
    assert "No heartbeat" not in found
    assert "caret" in found


def test_a_draft_does_not_replace_what_a_turn_without_heartbeat_says():
    draft = DraftText(fence=1, number=0, attempt=1, start=0, text="a", run_id=7)

    assert b'"#turn-answer-7:has(> .draft) > ' in TurnRenderer().render_draft(
        draft, None
    )


class Saying:
    """A viewer that says two things and ends."""

    def __init__(self, *words):
        self.words = words

    async def messages(self):
        for word in self.words:
            await asyncio.sleep(0)
            yield word


def test_several_runs_share_one_stream_until_all_are_over():
    async def received():
        viewers = [Saying(b"a1", b"a2"), Saying(), Saying(b"c1")]
        return [message async for message in merge_messages(viewers)]

    assert sorted(asyncio.run(received())) == [b"a1", b"a2", b"c1"]


def test_the_end_takes_the_connector_away():
    assert b'id="turn-live-3-4" hidden' in render_turns_end([3, 4])
