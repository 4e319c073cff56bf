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
        pytest.param("/api/v1/runs/7/events", "live", id="api-stream"),
        pytest.param("/api/v1/runs/7/events/", "live", id="with-a-slash"),
        pytest.param("/api/v1/runs/7", "django", id="api"),
        pytest.param("/api/v1/runs/x/events", "django", id="no-number"),
        pytest.param("/runs/7/", "django", id="page"),
        pytest.param("/old/live/", "django", id="live-inside"),
    ],
)
def test_streams_go_beside_django(path, expected):
    assert destination({"type": "http", "path": path}) == expected


def test_the_live_application_knows_when_the_server_starts_and_ends():
    assert destination({"type": "lifespan"}) == "live"
