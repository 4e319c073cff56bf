"""The private Redis of a test session."""

import redis


def test_a_session_has_a_redis(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
