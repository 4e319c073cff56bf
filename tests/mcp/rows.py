"""Makers of servers and of tools taken over from them."""

import atexit
import shlex
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.fork_server import ForkServer, fork_server
from tests.tools.rows import make_user
from tools.definition.save import save_tool
from tools.mcp_offer import Offer
from tools.mcp_servers.import_tools import discover_mcp_tools, import_mcp_tools
from tools.models import McpServer, Tool

STDIO_SERVER = Path(__file__).parent / "servers/stdio_server.py"
SMALL_SERVER = Path(__file__).parent / "servers/small_server.py"


def command_line(name: str = "tests", *, variables: str = "", folder: str = "") -> str:
    """Return an operator's list with the one command of this folder, a fork."""
    words = fork_sdk().command(str(STDIO_SERVER), *filter(None, [folder]))
    program = shlex.join(words)
    return f"{name}={variables} {program}" if variables else f"{name}={program}"


@cache
def fork_sdk() -> ForkServer:
    """Return what has the SDK imported; it ends with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(fork_server("mcp.server.mcpserver"))


def small_command(folder: Path) -> str:
    """Return an operator's list with the server that starts fast."""
    return shlex.join([f"tests={sys.executable}", str(SMALL_SERVER), str(folder)])


def make_server(**more: Any) -> McpServer:
    """Return a stored server over stdio, unless an address is given."""
    values: dict[str, Any] = {"name": "Tests", "owner": make_user(), **more}
    if values.get("url"):
        values.setdefault("transport", McpServer.Transport.HTTP)
    else:
        values.setdefault("transport", McpServer.Transport.STDIO)
        values.setdefault("command", "tests")
    return McpServer.objects.create(**values)


def take_over(server: McpServer, *names: str, **more: Any) -> list[Tool]:
    """Return tools taken over from a running server, switched on."""
    offers = discover_mcp_tools(server, by=server.owner)
    chosen = {offer.name: offer.digest for offer in offers if offer.name in names}
    tools = import_mcp_tools(server, offers, chosen, by=server.owner)
    for tool in tools:
        for field, value in {"enabled": True, **more}.items():
            setattr(tool, field, value)
        save_tool(tool, by=server.owner)
    return tools


def offer(name: str = "add", **more: Any) -> Offer:
    """Return an offer as a server makes it."""
    return Offer.model_validate(
        {"name": name, "inputSchema": {"type": "object", "properties": {}}, **more}
    )
