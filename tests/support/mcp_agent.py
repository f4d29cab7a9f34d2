"""An agent that speaks MCP: the official client, and `memctl mcp` as a process at the other end of its pipes."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from support.daemon import Daemon

ROOT = Path(__file__).parents[2]
SECONDS = 50


def server(daemon: Daemon, **env: str) -> StdioServerParameters:
    """How an agent in the daemon's repository starts the server."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "memd.memctl", "mcp"],
        env={**daemon.env, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default", **env},
        cwd=str(daemon.repo),
    )


@asynccontextmanager
async def connected(
    daemon: Daemon, *, mode: str = "auto", news: list[Any] | None = None, **env: str
) -> AsyncIterator[Client]:
    """An agent that is connected; what the server tells by itself is put into `news`."""

    async def heard(message: Any) -> None:
        if news is not None:
            news.append(message)

    async with Client(server(daemon, **env), mode=mode, message_handler=heard) as client:
        yield client


def agent(
    daemon: Daemon,
    work: Callable[[Client], Awaitable[None]],
    *,
    mode: str = "auto",
    news: list[Any] | None = None,
    **env: str,
) -> None:
    """Do `work` as one agent."""

    async def run() -> None:
        with anyio.fail_after(SECONDS):
            async with connected(daemon, mode=mode, news=news, **env) as client:
                await work(client)

    anyio.run(run)


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool's structured result; the test fails when it is an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    reply = result.structured_content
    assert isinstance(reply, dict)
    return reply


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a tool's error; the test fails when there is none."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]
