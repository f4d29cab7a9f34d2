"""`make bench`: every bench, one table, JSON. Law: the figures of a run are told, those that fall short too.

    python -m tests.bench [--quick] [--json FILE] [--dir DIR] [NAME…]

Names are those of the modules: saving, whole, roundtrip, search, large, focus, live, starting, history,
hooks; all of them without a name. `--quick`
takes small sizes: the plumbing is tried, the figures mean little and are not judged. Otherwise it exits 1 when one is
not within its bound. `--json -` writes the JSON instead of the table. `--dir` is where the stores that are
written to are made, `/var/tmp` by default: never a file system in memory. On a machine that does something else
the ratios still hold more or less, since floor and figure wait alike; the load average is told with them. A run
right after another finds the disk slower: it is busy with what the first one deleted.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import rows
from .house import PLACE

BENCHES = ("saving", "whole", "roundtrip", "search", "large", "focus", "live", "starting", "history", "hooks")
"""In the order they are run: saves first, since a file system may remember what was deleted before."""

_ON_DISK = frozenset({"saving", "whole", "large", "live", "starting", "history", "hooks"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches that are asked for; the exit status."""
    options = _parser().parse_args(arguments)
    reports = [run(name, quick=options.quick, place=options.dir) for name in BENCHES if name in chosen(options.names)]
    whole = {
        "machine": machine(),
        "quick": options.quick,
        "benches": reports,
        "ok": all(report["ok"] for report in reports),
    }
    text = json.dumps(whole, indent=1) + "\n"
    if options.json == "-":
        sys.stdout.write(text)
    else:
        sys.stdout.write(f"{described(whole)}\n{rows.table(line for report in reports for line in report['rows'])}")
        if options.json is not None:
            Path(options.json).write_text(text)
    return 0 if whole["ok"] or options.quick else 1


def run(name: str, *, quick: bool, place: Path) -> dict[str, Any]:
    """One bench's report, with the load average before and after it."""
    bench: Callable[..., dict[str, Any]] = importlib.import_module(f"{__package__}.{name}").run
    before = os.getloadavg()[0]
    report = bench(quick, place) if name in _ON_DISK else bench(quick)
    return {**report, "load": [round(before, 2), round(os.getloadavg()[0], 2)]}


def chosen(names: Sequence[str]) -> Sequence[str]:
    """The names that were given, else all."""
    return names or BENCHES


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}


def described(whole: dict[str, Any]) -> str:
    """A line about the machine and one about each bench."""
    there = whole["machine"]
    lines = [f"Python {there['python']}, {there['cores']} cores, {there['system']}"]
    for report in whole["benches"]:
        kept = {key: value for key, value in report.items() if key not in ("name", "rows", "ok", "load")}
        told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in kept.items())
        before, after = report["load"]
        lines.append(f"{report['name']}: {told}{', ' if told else ''}load {before} to {after}")
    return "\n".join(lines) + "\n"


def _name(text: str) -> str:
    if text not in BENCHES:
        raise argparse.ArgumentTypeError(f"{text} is not one of {', '.join(BENCHES)}")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure memd against its floors.")
    parser.add_argument("names", nargs="*", type=_name, metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="small sizes: try the plumbing")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON; - for standard output")
    parser.add_argument("--dir", metavar="DIR", type=Path, default=PLACE, help="where homes and stores are made")
    return parser


if __name__ == "__main__":
    sys.exit(main())
