"""`make load`: 64 clients mix all verbs for ten minutes, and the daemon is as it was before them.

    python -m tests.load [--minutes N] [--seconds N] [--clients N] [--seed N]

A quarter of the time warms up; then everybody leaves, and after the minute's look the daemon's descriptors and
memory are noted; then the rest, and they are noted again. Exits 1 on an error that no client asked for, a line of the
log that is no information, a descriptor more, or memory that grew past `GROWTH`. Latencies are the clients', whose
processes share the machine with the daemon: they tell whom nobody starved, not what a call costs (`make bench` does).
Linux only.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))

from support.daemon import Daemon, running_daemon  # noqa: E402
from support.waiting import until  # noqa: E402

GROWTH = 1.15
"""How many times its memory after the warming up the daemon may have at the end, and `SLACK_KB` more."""
SLACK_KB = 8 * 1024
LOOKED_S = 5.0
"""Seconds after the minute's look when what it gives back is gone."""
PROCESSES = 4
REPOS = 4


class Size(NamedTuple):
    """What a process holds: descriptors, resident memory in KiB."""

    descriptors: int
    rss_kb: int


class Outcome(NamedTuple):
    """What a load came to."""

    took: dict[str, list[float]]
    asked_for: Counter[str]
    done: Counter[str]
    faults: list[str]
    before: Size
    after: Size
    memory_kb: list[int]


def run(seconds: float, clients: int, seed: int, *, memory: bool = True) -> Outcome:
    """Load a daemon for `seconds`; what came of it. Without `memory` its size is not judged, no look waited for."""
    with running_daemon() as daemon:
        repos = _repositories(daemon)
        warm = _phase(daemon, repos, "warm", seconds / 4, clients, seed)
        before = _alone(daemon, looks=memory)
        with Watch(daemon) as watch:
            main = _phase(daemon, repos, "main", seconds * 0.75, clients, seed + 1_000)
        after = _alone(daemon, looks=memory)
        faults = [*warm["faults"], *main["faults"], *_judged(before, after, memory=memory)]
        for repo in repos:
            findings = daemon.call("memory.verify", cwd=repo)["findings"]
            faults += [f"verify: {finding}" for finding in findings]
        faults += [f"the log: {line}" for line in daemon.log.splitlines() if not line.startswith("<6>")]
    return Outcome(
        main["took"], Counter(main["asked_for"]), Counter(main["done"]), faults, before, after, watch.memory_kb
    )


def _repositories(daemon: Daemon) -> list[Path]:
    repos = [daemon.repo, *(daemon.root / f"repo-{number}" for number in range(1, REPOS))]
    for repo in repos:
        (repo / ".git").mkdir(parents=True, exist_ok=True)
    notes = daemon.root / "notes"
    notes.mkdir()
    for number in range(3):
        (notes / f"imported-{number}.md").write_text(f"# Imported {number}\n\nThe quartz of import {number}.\n")
    return repos


def _phase(
    daemon: Daemon, repos: Sequence[Path], phase: str, seconds: float, clients: int, seed: int
) -> dict[str, Any]:
    """Let the clients loose for a while; their reports as one."""
    orders = {
        "env": daemon.env,
        "repos": [str(repo) for repo in repos],
        "notes": str(daemon.root / "notes"),
        "key": daemon.store.parent.name,
        "phase": phase,
        "seconds": seconds,
        "seed": seed,
    }
    command = [sys.executable, "-m", "tests.load.clients"]
    processes = []
    for number in range(min(PROCESSES, clients)):
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None
        json.dump({**orders, "clients": list(range(number, clients, PROCESSES))}, process.stdin)
        process.stdin.close()
        processes.append(process)
    whole: dict[str, Any] = {"took": {}, "asked_for": Counter(), "done": Counter(), "faults": []}
    for process in processes:
        assert process.stdout is not None
        with process.stdout:
            part = json.load(process.stdout)
        process.wait()
        for method, took in part["took"].items():
            whole["took"].setdefault(method, []).extend(took)
        whole["asked_for"].update(part["asked_for"])
        whole["done"].update(part["done"])
        whole["faults"] += part["faults"]
    return whole


def _alone(daemon: Daemon, *, looks: bool) -> Size:
    """What the daemon holds once only the asker is connected, and it had its minute's look where that counts."""

    with daemon.connect() as connection:  # one that is open all the time: it is counted each time alike

        def status() -> dict[str, Any]:
            return connection.call("daemon.status")

        until(lambda: status()["connections"] == 1, seconds=60)
        if looks:
            asked = time.monotonic()
            until(lambda: LOOKED_S < (status()["last_scan_s"] or 0) < time.monotonic() - asked, seconds=120)
        return size(daemon)


def size(daemon: Daemon) -> Size:
    """What the daemon holds now."""
    assert daemon.process is not None
    place = Path("/proc") / str(daemon.process.pid)
    [rss] = [line.split()[1] for line in (place / "status").read_text().splitlines() if line.startswith("VmRSS")]
    return Size(len(list((place / "fd").iterdir())), int(rss))


class Watch:
    """Looks at the daemon's memory each second while clients are at it."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.memory_kb: list[int] = []

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(1.0):
            self.memory_kb.append(size(self._daemon).rss_kb)


def _judged(before: Size, after: Size, *, memory: bool) -> list[str]:
    faults = []
    if memory and after.descriptors > before.descriptors:
        faults.append(f"{after.descriptors} descriptors at the end, {before.descriptors} after the warming up")
    if memory and after.rss_kb > before.rss_kb * GROWTH + SLACK_KB:
        faults.append(f"{after.rss_kb} KiB at the end, {before.rss_kb} after the warming up")
    return faults


def table(outcome: Outcome) -> str:
    """The figures, a line a verb."""
    lines = [f"{'verb':24}{'calls':>9}{'p50 ms':>10}{'p99 ms':>10}{'most ms':>10}"]
    for method, took in sorted(outcome.took.items()):
        ordered = sorted(took)
        middle, high = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        lines.append(f"{method:24}{len(took):>9}{middle:>10.1f}{high:>10.1f}{ordered[-1]:>10.1f}")
    lines.append(f"asked-for errors: {dict(sorted(outcome.asked_for.items()))}")
    lines.append(f"others: {dict(sorted(outcome.done.items()))}")
    before, after = outcome.before, outcome.after
    lines.append(
        f"descriptors {before.descriptors} -> {after.descriptors}; memory {before.rss_kb} -> {after.rss_kb} KiB,"
        f" {max(outcome.memory_kb, default=0)} at most; load average {os.getloadavg()[0]:.1f}"
    )
    tenth = max(1, len(outcome.memory_kb) // 10)
    lines.append(f"memory on the way: {' '.join(str(kb) for kb in outcome.memory_kb[::tenth])} KiB")
    lines += [f"FAULT {fault}" for fault in outcome.faults]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a load and tell of it; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description="Load a daemon with many clients.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args(arguments)
    seconds = options.seconds or options.minutes * 60
    sys.stdout.write(f"{options.clients} clients for {seconds:g} s, seed {options.seed}\n")
    sys.stdout.flush()
    outcome = run(seconds, options.clients, options.seed)
    sys.stdout.write(table(outcome))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
