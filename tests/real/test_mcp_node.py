"""The official MCP client for Node drives `memctl mcp`: two at once, and a daemon killed between calls. SPEC 13."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.daemon import running_daemon

ROOT = Path(__file__).parents[2]
MODULES = Path(sys.prefix) / "node" / "node_modules"
PROGRAM = Path(__file__).parent / "mcp_client.mjs"
TOOLS = {
    "memory_save",
    "memory_read",
    "memory_search",
    "memory_list",
    "memory_forget",
    "memory_focus",
    "history_search",
}


def test_two_clients_work_over_a_daemon_that_dies_between_calls() -> None:
    with running_daemon() as daemon:
        node = subprocess.Popen(
            ["node", str(PROGRAM), str(MODULES), sys.executable],
            env={**daemon.env, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"},
            cwd=daemon.repo,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert node.stdin is not None
        assert node.stdout is not None

        def said() -> Any:
            line = node.stdout.readline() if node.stdout is not None else ""
            assert line, node.communicate()[1]
            return json.loads(line)

        tools = said()["tools"]
        assert {name for name, _, _ in tools} == TOOLS
        assert all(has_schema for _, has_schema, _ in tools)
        hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert all(hints <= set(annotations) for _, _, annotations in tools)
        assert said()["name"] == "forge-tests"
        assert said()["hits"][0]["name"] == "forge-tests"
        assert said()["text"] == "Use -k smoke."
        assert "type" in said()["error"]
        assert said() == ["memory://repo/forge-tests"]
        assert said().endswith("Use -k smoke.\n")
        assert set(said()) == {"remember", "recall"}
        assert said() == "user"
        assert said() == {"waits": True}
        daemon.kill()
        daemon.start()
        node.stdin.write("go on\n")
        node.stdin.flush()
        assert [note["name"] for note in said()["notes"]] == ["forge-tests"]
        assert said()["receipt"]["versions"] == 1
        _, errors = node.communicate(timeout=30)
        assert node.returncode == 0, errors
        assert daemon.names() == []
