"""A day of a kernel that knows `import memory` and nothing else of memd, over the deaths of daemons (SPEC 8, 13)."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import kernel
from support.daemon import Daemon

CHILD = "only the root session keeps memory; the parent puts what a child needs in its task"


class Part:
    """One part of a kernel's day, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def told(self, name: str) -> Any:
        """What the next line tells, which must be of this name."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=20)[1]
        told = json.loads(line)
        assert [*told] == [name]
        return told[name]

    def go_on(self) -> None:
        """Let it live on after it waited."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def living(daemon: Daemon, part: str, **env: str) -> Iterator[Part]:
    """A part of a kernel's day, which must come to its end with nothing left to tell and no complaint."""
    process = subprocess.Popen(
        [sys.executable, str(Path(kernel.__file__)), part],
        env=daemon.env | {"MEMD_NO_AUTOSTART": "1"} | env,
        cwd=daemon.repo,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Part(process)
            rest, complaint = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, rest, complaint) == (0, "", "")


def restart(daemon: Daemon) -> None:
    """The daemon dies, and another one comes."""
    daemon.kill()
    daemon.start()


def sessions_of(daemon: Daemon, name: str) -> list[str]:
    """Who saved a note, oldest first."""
    records = daemon.call("memory.log", name=name)["records"]
    return [record["session"] for record in reversed(records) if record["op"] == "save"]


def test_a_whole_day(daemon: Daemon) -> None:
    daemon.save("deploy-steps", "Tag first, then wait for the signing job.", description="How to deploy the harbour")
    daemon.save("wind-gauge", "The wind gauge reports knots.", description="Units of the wind gauge")

    with living(daemon, "morning") as morning:
        assert morning.told("started") == {"lines": ["memory · 2 repo · 0 global · 0 unparsed"], "saves_left": 3}
        block = morning.told("block")
        assert block["frozen"] is False
        assert "Tag first, then wait for the signing job." in block["text"]
        first = morning.told("saved")
        assert (first["saved"], first["saves_left"]) == (1, 2)
        assert morning.told("hits") == ["tides"]
        morning.told("waits")

        restart(daemon)
        morning.go_on()
        again = morning.told("again")
        assert (again["text"], again["fenced"], again["frozen"]) == (block["text"], block["fenced"], True)
        assert morning.told("text") == "High water is at noon."
        second = morning.told("saved")
        assert (second["updated"], second["saves_left"]) == (True, 1)
        for verb in ("save", "forget"):
            kind, message = morning.told("planning")
            assert (kind, message.partition(":")[0]) == ("ReadOnly", f"memory.{verb}")
            assert "ExitPlanMode" in message
        assert morning.told("hits") == ["tides"]
        morning.told("waits")

        restart(daemon)
        morning.go_on()
        assert morning.told("planning")[0] == "ReadOnly"
        assert "tides" in morning.told("index")
        refused = morning.told("child")
        verbs = ("save", "read", "search", "focus", "index", "list")
        assert refused == [["NotRoot", f"memory.{verb}: {CHILD}"] for verb in verbs]
        pointers = [(entry["data"]["op"], entry["data"]["hash"]) for entry in morning.told("transcript")]
        assert pointers == [("save", first["hash"]), ("read", first["hash"]), ("save", second["hash"])]

    with living(daemon, "evening") as evening:
        resumed = evening.told("resumed")
        assert resumed["saves_left"] == 1
        assert resumed["block"] == again
        assert evening.told("saved")["saves_left"] == 0
        assert evening.told("spent") == ["SaveCap", "memory.save: at most 3 saves per session; this is save 4"]
        assert evening.told("forgot")["left"] == []
        assert evening.told("left") == ["deploy-steps", "wind-gauge", "flag"]

    with living(daemon, "other", MEMD_SESSION="day-2") as other:
        assert other.told("block")["frozen"] is False
        assert other.told("saved")["saves_left"] == 2

    assert sessions_of(daemon, "flag") == ["day-1"]
    assert sessions_of(daemon, "other") == ["day-2"]
    assert daemon.call("memory.stats")["repo"]["sessions"] == 2


def test_a_script_that_knows_no_sessions_has_one_of_its_own(daemon: Daemon) -> None:
    for _ in range(2):
        with living(daemon, "nobody") as script:
            assert script.told("saved")["saves_left"] == 2
    first, second = sessions_of(daemon, "nobody")
    assert first != second
    assert all(re.fullmatch(r"py-[0-9]+-[0-9a-f]{12}", session) for session in (first, second))
    assert daemon.call("memory.stats")["repo"]["sessions"] == 2


def test_a_session_whose_state_is_lost_is_started_again_as_it_was(daemon: Daemon) -> None:
    with living(daemon, "loser") as loser:
        assert loser.told("started")["saves_left"] == 7
        assert loser.told("saved")["saves_left"] == 6
        loser.told("waits")
        daemon.kill()
        (daemon.home / "sessions" / f"{kernel.ROOT}.json").unlink()
        daemon.start()
        loser.go_on()
        assert loser.told("saved")["saves_left"] == 5  # the journal remembers the save before
