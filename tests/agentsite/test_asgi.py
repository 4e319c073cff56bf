"""Which application a request goes to."""

import asyncio

import pytest

from agentsite.asgi import build_router


def destination(scope: dict) -> str:
    reached = []

    def app(name):
        async def answer(scope, receive, send):
            reached.append(name)

        return answer

    route = build_router(app("django"), app("live"))
    asyncio.run(route(scope, None, None))
    return reached[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/live/runs/7/", "live", id="page-stream"),
        pytest.param("/live/me/", "live", id="header-stream"),
        pytest.param("/api/v1/runs/7", "django", id="api"),
        pytest.param("/api/v1/runs/7/events", "django", id="api-stream"),
        pytest.param("/runs/7/", "django", id="page"),
        pytest.param("/old/live/", "django", id="live-inside"),
    ],
)
def test_streams_go_beside_django(path, expected):
    assert destination({"type": "http", "path": path}) == expected


def answer_of(path: str, find_hung) -> int:
    sent = []

    async def send(message):
        sent.append(message)

    route = build_router(None, None, find_hung)
    asyncio.run(route({"type": "http", "path": path}, None, send))
    return sent[0]["status"]


def test_liveness_is_answered_without_django():
    assert answer_of("/livez", list) == 200


def test_liveness_of_a_hung_process_is_503():
    assert answer_of("/livez", lambda: ["the event loop"]) == 503


@pytest.mark.slow
def test_the_live_application_knows_when_the_server_starts_and_ends():
    assert destination({"type": "lifespan"}) == "live"
