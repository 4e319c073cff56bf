"""What the same job costs by hand, in a Celery worker: the floor of such a system.

    python -m tests.bench.servers.reference_loop MODEL_PORT

One task a run: a loop around `http.client`, its tool called in place, and one committed
row in PostgreSQL for each answer of the model. No engine, no fence, no intent, no
recovery, no pages. Once warm it says so; then it reads `{"model", "runs", "at_once"}`
a line and answers each with `{"cpu", "wall", "began"}`, in seconds; the CPU is that of
worker and submitter.
"""

import http.client
import json
import os
import subprocess
import sys
import time
from functools import cache
from typing import Any
from uuid import uuid4

import redis
from celery import Celery
from psycopg_pool import ConnectionPool
from pydantic import BaseModel

from tests.bench.servers.site import cpu_of

REDIS_URL = os.environ.get("REDIS_URL", "")
QUEUE = "by-hand"
TABLE = """
CREATE TABLE IF NOT EXISTS by_hand (
    id bigserial PRIMARY KEY, run text, number int, kind text, payload text,
    at timestamptz DEFAULT now(), UNIQUE (run, number))
"""
INSERT = "INSERT INTO by_hand (run, number, kind, payload) VALUES (%s, %s, %s, %s)"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two whole numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    }
]

app = Celery("by_hand", broker=REDIS_URL.replace("unix://", "redis+socket://", 1))
app.conf.update(
    task_ignore_result=True, worker_prefetch_multiplier=1, task_default_queue=QUEUE
)


class Function(BaseModel):
    """What a call names."""

    name: str
    arguments: str


class Call(BaseModel):
    """One call of a reply."""

    id: str
    type: str
    function: Function


class Message(BaseModel):
    """The message of a reply."""

    role: str
    content: str | None = None
    tool_calls: list[Call] | None = None


class Choice(BaseModel):
    """The only choice."""

    message: Message


class Reply(BaseModel):
    """What the model's server sends."""

    choices: list[Choice]


class Numbers(BaseModel):
    """The arguments of the tool."""

    a: int
    b: int


@cache
def database() -> "ConnectionPool[Any]":
    """Return the pool of this process."""
    return ConnectionPool(
        os.environ["DATABASE_URL"],
        min_size=1,
        max_size=10,
        timeout=60,
        kwargs={"autocommit": True},
        open=True,
    )


@cache
def broker() -> "redis.Redis":
    """Return the connections over which ends are told."""
    return redis.Redis.from_url(REDIS_URL, socket_timeout=150)


@app.task(name="by_hand")
def run_by_hand(port: int, model: str, text: str) -> None:
    """Drive one run to its answer, and tell it."""
    server = http.client.HTTPConnection("127.0.0.1", port)
    run, number, answer = uuid4().hex, 0, None
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Add up."}]
    while answer is None:
        body = {"model": model, "messages": messages, "tools": TOOLS}
        kind = {"Content-Type": "application/json"}
        server.request("POST", "/v1/chat/completions", json.dumps(body), kind)
        reply = Reply.model_validate_json(server.getresponse().read())
        message = reply.choices[0].message
        new = [message.model_dump(exclude_none=True)]
        for call in message.tool_calls or ():
            given = Numbers.model_validate_json(call.function.arguments)
            total = str(given.a + given.b)
            new.append({"role": "tool", "tool_call_id": call.id, "content": total})
        messages += new
        if not message.tool_calls:
            answer = message.content or ""
        row = (run, number, "answer" if answer else "tool", json.dumps(new))
        with database().connection() as connection:
            connection.execute(INSERT, row)
        number += 1
    server.close()
    broker().rpush(text, answer)


def measure(worker: int, port: int, request: dict[str, Any]) -> dict[str, Any]:
    """Do the job `runs` times, one after another or all at once."""
    text, runs = f"by-hand:{uuid4().hex}", int(request["runs"])
    cpu, start = cpu_of(worker) + time.process_time(), time.monotonic()
    began = []
    for waits in [runs] if request["at_once"] else [1] * runs:
        for _ in range(waits):
            began.append(time.monotonic())
            run_by_hand.apply_async((port, request["model"], text))
        for _ in range(waits):
            assert broker().blpop([text], timeout=120), "The loop by hand hangs."
    wall = time.monotonic() - start
    cpu = cpu_of(worker) + time.process_time() - cpu
    return {"cpu": cpu, "wall": wall, "began": began}


def main(port: int) -> None:
    """Start the worker, warm it up, and measure what is asked for."""
    with database().connection() as connection:
        connection.execute(TABLE)
    command = ["celery", "-q", "-A", "tests.bench.servers.reference_loop", "worker"]
    command += ["-P", "threads", "-c", "200", "-l", "WARNING", "-Q", QUEUE]
    worker = subprocess.Popen([sys.executable, "-m", *command])
    try:
        warm = {"model": "mock-k5-l0", "runs": 20, "at_once": True}
        tell(measure(worker.pid, port, warm))
        for line in sys.stdin:
            tell(measure(worker.pid, port, json.loads(line)))
    finally:
        worker.kill()
        worker.wait()
        database().close()


def tell(found: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
