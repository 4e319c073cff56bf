"""A server of FastMCP: `fastmcp_server.py [PORT [TOKEN]]`, over stdio without a port.

It runs in the environment `.venv/servers`, without anything of this project.
"""

import io
import struct
import sys
import wave
import zlib

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.utilities.types import Audio, Image
from pydantic import BaseModel

port, token = (*sys.argv[1:], "", "")[:2]
verifier = StaticTokenVerifier({token: {"client_id": "tests", "scopes": []}})
server = FastMCP("tests", auth=verifier if token else None)


class Place(BaseModel):
    """A place of an answer with structure."""

    city: str
    degrees: float


@server.tool
def add(a: int, b: int) -> int:
    """Return the sum."""
    return a + b


@server.tool
def find_place(city: str) -> Place:
    """Return a place."""
    return Place(city=city, degrees=21.5)


@server.tool
def draw() -> list:
    """Return a drawing of one red dot, and what it sounds like."""
    return ["A red dot:", Image(data=dot(), format="png"), speech()]


@server.tool
def speak() -> Audio:
    """Return a short silence."""
    return speech()


@server.tool
def fail(why: str) -> str:
    """Fail as a tool does."""
    raise ToolError(why)


@server.tool
def crash() -> str:
    """Fail as nobody expects."""
    raise RuntimeError("wires crossed")


@server.tool
async def count_to(number: int, ctx: Context) -> str:
    """Report progress and log while counting."""
    for done in range(1, number + 1):
        await ctx.report_progress(done, number, f"number {done}")
        await ctx.info(f"counted {done}")
    return f"counted to {number}"


@server.tool
async def remember(word: str, ctx: Context) -> str:
    """Return what was remembered before in this session."""
    before = await ctx.get_state("word")
    await ctx.set_state("word", word)
    return str(before)


@server.tool
async def confirm(ctx: Context) -> str:
    """Ask the person."""
    answer = await ctx.elicit("Sure?", response_type=bool)
    return str(answer)


def dot() -> bytes:
    """Return a PNG of one red pixel."""
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\xff\0\0")),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data))
        + name
        + data
        + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def speech() -> Audio:
    """Return a WAV of a tenth of a second."""
    whole = io.BytesIO()
    with wave.open(whole, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(1600))
    return Audio(data=whole.getvalue(), format="wav")


if __name__ == "__main__":
    if port:
        server.run("http", port=int(port), show_banner=False, log_level="ERROR")
    else:
        server.run("stdio", show_banner=False, log_level="ERROR")
