"""Text deltas as a worker sends them, without the pace of its writer."""

from runs.redis_streams import TextDelta, get_stream_sender


def send_text_delta(
    run_id: int, *, fence: int, number: int, attempt: int, at: int, text: str
) -> None:
    get_stream_sender().put(TextDelta(run_id, fence, number, attempt, at, text))
