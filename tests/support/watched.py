"""What became of a hand's files. Law: seen in the store's own files, since a question makes memd look."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.daemon import Daemon, daemon_home
from support.waiting import until

AS_SAVED = ["save cli"]
EDITED = ["save cli", "edit hand"]


def records(store: Path) -> list[dict[str, Any]]:
    """The journal's whole records, read without asking the daemon, which would look itself."""
    path = store / "ops.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def journal(store: Path, name: str) -> list[str]:
    """What happened to a note and by whom, oldest first."""
    return [
        f"{record['op']} {record.get('by', record.get('session'))}"
        for record in records(store)
        if record["name"] == name
    ]


def texts(store: Path, name: str) -> list[bytes]:
    """Every text the journal names of a note, from its object, which must hold what it says."""
    found = []
    for record in records(store):
        if record["name"] == name and record["op"] != "forget":
            raw = (store / "objects" / record["hash"].removeprefix("sha256:")).read_bytes()
            assert hashlib.sha256(raw).hexdigest() == record["hash"].removeprefix("sha256:")
            found.append(raw)
    return found


def status(daemon: Daemon) -> dict[str, Any]:
    """How the daemon is."""
    with daemon.connect() as connection:
        return connection.call("daemon.status")


def hears(daemon: Daemon, *names: str) -> None:
    """Save these notes, and wait until their store is listened to."""
    for name in names:
        daemon.save(name, f"The words of {name}.")
    until(lambda: bool(status(daemon)["watching"]))


@contextmanager
def quick_home() -> Iterator[Daemon]:
    """A daemon, not started, that believes a deletion after 0.3 s."""
    with daemon_home() as daemon:
        config = daemon.root / "config.toml"
        config.write_text("settle_ms = 300\n")
        daemon.env["MEMD_CONFIG"] = str(config)
        yield daemon


@contextmanager
def quick_daemon() -> Iterator[Daemon]:
    """A daemon that answers, and believes a deletion after 0.3 s."""
    with quick_home() as daemon:
        daemon.start()
        yield daemon
