"""Images and sounds in results: kept, shown on the run page, named for the model."""

import json
from base64 import b64encode

import pytest

from runs.engine.types import IMAGE_TOKENS, AudioPart, ImagePart, Message
from runs.models import StepMedia
from runs.services.forks.edits import ForkEdits
from runs.services.forks.fork import fork_run
from runs.services.forks.point import load_fork_point
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.mcp.rows import make_server, take_over
from tests.mcp.servers.http_server import mcp_server
from tests.worker.run_parts import call, executed
from tools.mcp.results import parse_call_result
from tools.media import MAX_MEDIA, MAX_MEDIA_BYTES, Media, MediaResult
from tools.services.try_tool import try_tool

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def image(content=PNG, **more):
    part = {
        "type": "image",
        "mimeType": "image/png",
        "data": b64encode(content).decode(),
    }
    return {**part, **more}


@pytest.mark.parametrize(
    ("parts", "text", "kept"),
    [
        ([image()], "[image 1: image/png, 108 bytes]", 1),
        (
            [{"type": "text", "text": "Look:"}, image(), image(mimeType="image/webp")],
            "Look:\n[image 1: image/png, 108 bytes]\n[image 2: image/webp, 108 bytes]",
            2,
        ),
        (
            [image(type="audio", mimeType="audio/wav")],
            "[sound 1: audio/wav, 108 bytes]",
            1,
        ),
        (
            [
                {
                    "type": "resource",
                    "resource": {
                        "uri": "u:x",
                        "mimeType": "image/png",
                        "blob": b64encode(PNG).decode(),
                    },
                }
            ],
            "[image 1: image/png, 108 bytes]",
            1,
        ),
        (
            [image(mimeType="image/svg+xml")],
            "[image/svg+xml, 108 bytes, not shown]",
            0,
        ),
        ([image(data="%%%%")], "[image/png, not readable]", 0),
        ([image(data=5)], "[image/png, not readable]", 0),
        (
            [image(bytes(MAX_MEDIA_BYTES + 30))],
            "[image/png, 5,242,911 bytes, too large to be shown]",
            0,
        ),
    ],
)
def test_a_result_names_what_is_no_text(parts, text, kept):
    found = parse_call_result({"content": parts}, "here")

    assert (found.value if kept else found) == text
    assert len(found.media if kept else ()) == kept


def test_only_some_of_very_many_images_are_kept():
    found = parse_call_result({"content": [image()] * (MAX_MEDIA + 1)}, "here")

    assert len(found.media) == MAX_MEDIA
    assert found.value.endswith("[image/png, 108 bytes, one of too many to be shown]")


def test_the_structure_of_a_result_with_text_and_image_is_the_text():
    parts = {"content": [image()], "structuredContent": {"a": 1}}

    assert parse_call_result(parts, "here") == MediaResult(
        "[image 1: image/png, 108 bytes]", (Media("image/png", PNG),)
    )


@pytest.fixture
def drawing(settings):
    """Give a tool that returns an image, and a run that called it."""
    owner = make_user()
    with mcp_server() as running, model_server(script=[call("draw"), "Done."]) as model:
        settings.PRIVATE_HOSTS = f"{running.policy};provider=127.0.0.1"
        server = make_server(url=running.url, owner=owner)
        tools = take_over(server, "draw", approval="never")
        provider = make_provider(owner, base_url=model.base_url)
        run = executed(make_agent(owner, tools=tools, provider=provider))
        yield run, model, tools[0]


@pytest.mark.django_db(transaction=True)
def test_an_image_is_shown_on_the_run_page(drawing, client):
    run, model, _tool = drawing
    client.force_login(run.owner)

    (step,) = run.steps.all()
    assert step.observation == "A drawing:\n[image 1: image/png, 108 bytes]"
    assert bytes(step.media.get().content) == PNG
    message = str(model.requests[1].body)
    assert "[image 1: image/png, 108 bytes]" in message

    address = f"/runs/{run.pk}/steps/2/media/1/"
    for tab in ("readable", "tool"):
        page = client.get(f"/runs/{run.pk}/?step=2&tab={tab}").content.decode()
        assert f'<img src="{address}" alt="Image 1"' in page
    shown = client.get(address)
    assert (shown.content, shown.headers["Content-Type"]) == (PNG, "image/png")
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in shown.headers["Content-Security-Policy"]
    assert client.get(f"/runs/{run.pk}/steps/2/media/2/").status_code == 404
    client.force_login(make_user("eve"))
    assert client.get(address).status_code == 404


ENCODED = b64encode(PNG).decode()
URL = f"data:image/png;base64,{ENCODED}"
SENT = {
    "openai": {"type": "image_url", "image_url": {"url": URL}},
    "gemini": {"type": "image_url", "image_url": {"url": URL}},
    "responses": {"type": "input_image", "image_url": URL},
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": ENCODED},
    },
    "ollama": {"images": [ENCODED]},
}


@pytest.fixture(params=SENT)
def seen(request, settings, client):
    """Give a run of a model that reads images, of each kind of provider."""
    owner = make_user()
    script = [call("draw"), call("draw"), "Done."]
    with mcp_server() as running, model_server(script=script) as model:
        settings.PRIVATE_HOSTS = f"{running.policy};provider=127.0.0.1"
        tools = take_over(
            make_server(url=running.url, owner=owner), "draw", approval="never"
        )
        provider = make_provider(owner, kind=request.param, base_url=model.root)
        agent = make_agent(owner, tools=tools, provider=provider)
        provider.models.create(name=agent.model, images=True)
        run = executed(agent)
        client.force_login(owner)
        yield run, model, SENT[request.param]


@pytest.mark.django_db(transaction=True)
def test_a_model_that_reads_images_gets_them(seen, client):
    run, model, part = seen

    assert run.status == "succeeded", run.error_message
    second, third = (json.dumps(asked.body) for asked in model.requests[1:])
    wanted = json.dumps(part)[1:-1]
    assert (second.count(wanted), third.count(wanted)) == (1, 2)
    assert "The images that draw returned, in their order:" in second

    page = client.get(f"/runs/{run.pk}/?step=5&tab=request")
    assert page.context["raw"]["note"].startswith("Rebuilt from the record; its messa")
    shown = client.get(f"/runs/{run.pk}/steps/5/request/").content.decode()
    assert json.loads(shown) == model.requests[2].body


SOUND = {"data": b64encode(b"RIFF0000WAVE").decode(), "format": "wav"}
HEARD = {
    "openai": {"type": "input_audio", "input_audio": SOUND},
    "gemini": {"type": "input_audio", "input_audio": SOUND},
    "responses": None,
    "anthropic": None,
    "ollama": None,
}


def speaking(settings, kind="openai", *, format="wav", **takes):
    """Run an agent whose tool returns a sound; return the run and the last request."""
    owner = make_user()
    script = [call("speak", format=format), "Done."]
    with mcp_server() as running, model_server(script=script) as model:
        settings.PRIVATE_HOSTS = f"{running.policy};provider=127.0.0.1"
        tools = take_over(
            make_server(url=running.url, owner=owner), "speak", approval="never"
        )
        provider = make_provider(owner, kind=kind, base_url=model.root)
        agent = make_agent(owner, tools=tools, provider=provider)
        provider.models.create(name=agent.model, **takes)
        run = executed(agent)
        assert run.status == "succeeded", run.error_message
        return run, model.requests[1].body


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", HEARD)
def test_a_model_that_takes_sounds_gets_them(settings, client, kind):
    run, sent = speaking(settings, kind, audio=True, images=True)

    message = json.dumps(sent)
    assert "[sound 2: audio/wav, 12 bytes]" in message
    if HEARD[kind] is None:
        assert SOUND["data"] not in message
        assert "Sound 2" not in message
    else:
        *_, images, sound = sent["messages"]
        assert [one["type"] for one in images["content"]] == [
            *("text", "image_url", "image_url")
        ]
        heading = {"type": "text", "text": "Sound 2 that speak returned:"}
        assert sound == {"role": "user", "content": [heading, HEARD[kind]]}
    client.force_login(run.owner)
    shown = client.get(f"/runs/{run.pk}/steps/3/request/").content.decode()
    assert json.loads(shown) == sent


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("format", "takes"),
    [("ogg", {"audio": True}), ("wav", {"audio": None}), ("wav", {"images": True})],
)
def test_other_sounds_and_models_get_only_the_text(settings, format, takes):
    _run, sent = speaking(settings, format=format, **takes)

    message = json.dumps(sent)
    assert f"[sound 2: audio/{format}, 12 bytes]" in message
    assert SOUND["data"] not in message


def test_a_sound_counts_as_tokens_by_its_length():
    sound = AudioPart(format="mp3", data="A" * 400_000, number=1)

    size = Message(role="user", content=(sound,)).size

    assert size // 4 == pytest.approx(400, abs=30)


@pytest.mark.django_db(transaction=True)
def test_another_model_gets_only_the_text(drawing):
    _run, model, _tool = drawing

    assert ENCODED not in json.dumps(model.requests[1].body)


def test_an_image_counts_as_a_fixed_number_of_tokens():
    images = [ImagePart(media_type="image/png", data="A" * size) for size in (9, 10**6)]

    sizes = {Message(role="user", content=(one,)).size for one in images}

    assert len(sizes) == 1
    assert sizes.pop() // 4 == pytest.approx(IMAGE_TOKENS, abs=30)


@pytest.mark.django_db(transaction=True)
def test_a_fork_keeps_the_images_of_the_steps_it_copies(drawing):
    run, _model, _tool = drawing

    fork = fork_run(load_fork_point(run, 3), by=run.owner, edits=ForkEdits())
    run.delete()

    assert bytes(StepMedia.objects.get(step__run=fork).content) == PNG


@pytest.mark.django_db(transaction=True)
def test_an_edited_result_has_no_image(drawing):
    run, _model, _tool = drawing
    edits = ForkEdits(observation="I drew nothing.")

    fork = fork_run(load_fork_point(run, 2), by=run.owner, edits=edits)

    assert not StepMedia.objects.filter(step__run=fork).exists()


@pytest.mark.django_db(transaction=True)
def test_a_test_call_shows_the_text(drawing):
    run, _model, tool = drawing

    tried = try_tool(tool, {}, by=run.owner)

    assert tried.value_text == "A drawing:\n[image 1: image/png, 108 bytes]"
