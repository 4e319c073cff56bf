"""The model of the soak: what it answers depends on the seed and the conversation."""

import json
import random
import re
import threading
from typing import Any

from tests.fakes.model_server import Recorded

QUESTION = "Soak run {number}, {rounds} rounds."
TOOLS = ("look", "look", "put", "pay", "sign")
FAULTS = ("429-ms", "503", "cut", "close")
MOST_ROUNDS = 5
TIMEOUT_SECONDS = 4.0
"""What the provider is set to."""


class Planner:
    """Answers each request; at a few places its first answer is a fault."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._stumbled: set[str] = set()
        self._lock = threading.Lock()
        self.is_hanging = threading.Event()
        """A request that comes while it is set is never answered."""

    def question(self, number: int) -> str:
        """Return what run `number` is asked."""
        rounds = random.Random(f"{self.seed}:{number}").randint(1, MOST_ROUNDS)
        return QUESTION.format(number=number, rounds=rounds)

    def __call__(self, request: Recorded) -> Any:
        """Return the next round of calls, or the answer after the last round."""
        messages = request.body["messages"]
        asked = next(m["content"] for m in messages if m["role"] == "user")
        number, rounds = (int(n) for n in re.findall(r"\d+", asked)[:2])
        at = sum(m["role"] == "assistant" for m in messages)
        dice = random.Random(f"{self.seed}:{number}:{at}")
        fault, seconds = dice.random(), dice.random() * 0.3
        place = f"{number}:{at}"
        with self._lock:
            is_first = place not in self._stumbled
            self._stumbled.add(place)
        if self.is_hanging.is_set():
            return {"fault": "hang"}
        if fault < 0.04 and is_first:
            return {"fault": dice.choice(FAULTS)}
        if at >= rounds:
            return {"content": answer_to(number, rounds), "seconds": seconds}
        calls = [self._call(dice, number, at, n) for n in range(dice.randint(1, 3))]
        return {"tool_calls": calls, "seconds": seconds}

    def _call(self, dice: random.Random, number: int, at: int, n: int) -> Any:
        arguments = json.dumps({"call": f"{number}.{at}.{n}"})
        name = dice.choice(TOOLS)
        return {"id": f"c{at}-{n}", "name": name, "arguments": arguments}


def answer_to(number: int, rounds: int) -> str:
    """Return what a run answers that went all its way."""
    return f"Run {number} is done after {rounds} rounds."
