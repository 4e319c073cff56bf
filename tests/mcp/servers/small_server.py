"""A server over standard input and output that starts fast and can misbehave.

`small_server.py FOLDER`: each start is noted in the folder with its process number.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])
TOOLS = ("count", "stick", "breed")
"""Counting calls; never answering anything again; starting a process that stays."""


def answer(method: str, params: dict) -> dict:
    """Return the result of one request."""
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {}}
        return {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": call(params["name"])}]}
    return {}


def call(name: str) -> str:
    """Return what a tool says."""
    global calls
    calls += 1
    if name == "stick":
        time.sleep(600)
    if name == "breed":
        # Like npx: the real server is a child that ignores the end of its input.
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        return str(subprocess.Popen(sleeper).pid)
    return str(calls)


calls = 0
with (FOLDER / "pids").open("a") as pids:
    pids.write(f"{os.getpid()}\n")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked["params"])
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        sys.stdout.write(f"{json.dumps(reply)}\n")
        sys.stdout.flush()
