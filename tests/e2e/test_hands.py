"""A person's files in a running daemon: what a hand writes is journaled within a moment, once; nothing is lost."""

import json
from pathlib import Path
from typing import Any

from support.daemon import Daemon
from support.waiting import until


def journal(store: Path, name: str) -> list[str]:
    """What the journal says of a note, oldest first, without asking the daemon, which would then look itself."""
    path = store / "ops.jsonl"
    records: list[dict[str, Any]] = [json.loads(line) for line in path.read_bytes().splitlines(keepends=True)]
    return [f"{record['op']} {record.get('by', 'agent')}" for record in records if record["name"] == name]


def status(daemon: Daemon) -> dict[str, Any]:
    """How the daemon is."""
    with daemon.connect() as connection:
        return connection.call("daemon.status")


def test_an_edit_is_journaled_by_itself_and_status_tells_when(daemon: Daemon) -> None:
    daemon.save("kept", "as saved")
    until(lambda: status(daemon)["watching"])
    (daemon.store / "kept.md").write_text("by hand\n")
    until(lambda: journal(daemon.store, "kept") == ["save cli", "edit hand"])
    told = status(daemon)
    assert 0 <= told["last_event_s"] <= told["uptime_s"]
