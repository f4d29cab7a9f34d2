"""`make fuzz`: coverage-guided fuzzing of every room that reads what others wrote, and Hypothesis over the same laws.

    python -m tests.fuzz [--seconds N] [--plant-seconds N] [--examples N] [--keep] [TARGET…]

Of each target (all of them without a name): every bug that is planted must be found within `--plant-seconds`, from
the seeds alone, or the fuzzer is not believed; then `--seconds` of fuzzing must break no law; then what was found,
the seeds and the corpus are run once under a branch meter; then inputs repeated to many times their length must not
take more than their share of time; at last `--examples` of Hypothesis. `--keep` keeps in `corpus/` what takes a new
branch. Exits 1 when a law broke (the input is added to the corpus), a planted bug was missed, or a share is below its
bound.
"""

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import corpus
from .corpus import tell
from .targets import TARGETS, Target
from .worker import ROOT

RSS_MB = 512
"""What a fuzzing process may take, interpreter and inventor included; it ends as a finding above that."""
HUNG_S = 300
"""Seconds by the clock, which a busy machine stretches: an input that takes longer hangs, and is a finding."""
MAX_LEN = 2048
"""Bytes of an input."""


class Run(NamedTuple):
    """What a fuzzing process did: whether a law broke, by which input, how often it was called, its largest size."""

    broke: bool
    by: bytes | None
    executions: int
    rss_mb: int
    said: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    failures: list[str] = []
    for name in options.targets or TARGETS:
        failures += _one(name, options)
    for failure in failures:
        tell(f"FAILED {failure}")
    return 1 if failures else 0


def _one(name: str, options: argparse.Namespace) -> list[str]:
    target = TARGETS[name]
    failures = []
    for number, bug in enumerate(target.plants):
        with tempfile.TemporaryDirectory(prefix="memd-fuzz-") as directory:
            run = fuzz(name, str(number), Path(directory), target.seeds, seconds=options.plant_seconds)
        at_once = run.broke and run.executions <= len(target.seeds) + 2
        tell(f"{name}: planted bug {number} ({bug.file}): {_found(run)}")
        if not run.broke or at_once:
            failures.append(f"{name}: planted bug {number} {'needs no fuzzer' if at_once else 'was not found'}")
    with tempfile.TemporaryDirectory(prefix="memd-fuzz-") as directory:
        place = Path(directory)
        run = fuzz(name, "-", place, {*target.seeds, *corpus.kept(name)}, seconds=options.seconds)
        tell(f"{name}: {run.executions} executions, at most {run.rss_mb} MB")
        if run.broke:
            failures.append(f"{name}: {run.by!r} breaks a law\n{run.said}")
            corpus.keep(name, [*corpus.kept(name), *([run.by] if run.by is not None else [])])
        found = {*target.seeds, *corpus.kept(name), *(path.read_bytes() for path in (place / "corpus").iterdir())}
        failures += _measured(name, target, found, place)
        if options.keep and not run.broke:
            _keep_telling(name, found, place)
    failures += _script("scaling", name)
    if options.examples:
        share = -(-options.examples // len(options.targets or TARGETS))
        failures += _script("examples", name, str(share))
    return failures


def fuzz(name: str, plant: str, place: Path, inputs: Iterable[bytes], *, seconds: int) -> Run:
    """Fuzz a target for at most `seconds` in a process of its own, from `inputs` on."""
    directory = place / "corpus"
    directory.mkdir()
    for number, data in enumerate(inputs):
        (directory / f"given-{number}").write_bytes(data)
    words = place / "words"
    words.write_text("".join(f'"{_spelled(word)}"\n' for word in TARGETS[name].words))
    command = [
        *(sys.executable, "-m", "tests.fuzz.worker", name, plant, str(place)),
        *(f"-max_total_time={seconds}", f"-rss_limit_mb={RSS_MB}", f"-timeout={HUNG_S}", f"-max_len={MAX_LEN}"),
        *("-print_final_stats=1", f"-artifact_prefix={place}/", f"-dict={words}", str(directory)),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=seconds + 2 * HUNG_S, check=False
    )
    broken = next(iter([*place.glob("crash-*"), *place.glob("oom-*")]), None)
    counted = place / "executions"
    executions = (
        int(counted.read_text()) if counted.exists() else _number(r"number_of_executed_units: (\d+)", done.stderr)
    )
    if done.returncode != 0 and broken is None:
        raise RuntimeError(f"the fuzzer ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Run(
        broken is not None,
        broken.read_bytes() if broken else None,
        executions,
        _number(r"peak_rss_mb: +(\d+)", done.stderr),
        done.stdout[-3000:] + done.stderr[:3000],
    )


def _found(run: Run) -> str:
    return f"found after {run.executions} executions by {run.by!r:.80}" if run.broke else "NOT FOUND"


def _measured(name: str, target: Target, found: Iterable[bytes], place: Path) -> list[str]:
    """Say which share of the rooms' branches `found` takes; what is below its bound."""
    inputs = place / "all"
    inputs.write_text(json.dumps([data.hex() for data in found]))
    data = place / "coverage"
    python = [sys.executable, "-m", "coverage"]
    include = ",".join(f"memd/{room}" for room in target.rooms)
    _done(
        [
            *python,
            "run",
            "--branch",
            f"--data-file={data}",
            f"--include={include}",
            "-m",
            "tests.fuzz.replay",
            name,
            inputs,
        ]
    )
    _done([*python, "json", "-q", f"--data-file={data}", "-o", place / "coverage.json"])
    failures = []
    for file, report in json.loads((place / "coverage.json").read_text())["files"].items():
        part = report if target.region is None else report["classes"][target.region]
        share = part["summary"]["percent_branches_covered"]
        what = file if target.region is None else f"{file} {target.region}"
        missing = part.get("missing_branches", [])
        tell(f"{name}: {share:.1f} % of the branches of {what}; not taken: {missing}")
        if target.least is not None and share < target.least:
            failures.append(f"{name}: {share:.1f} % of the branches of {what}, under {target.least} %")
    return failures


def _keep_telling(name: str, found: Iterable[bytes], place: Path) -> None:
    """Keep in the corpus the inputs that take a way through the rooms which no shorter one took."""
    inputs = place / "all"
    short = sorted((data for data in found if len(data) <= corpus.LONGEST), key=lambda data: (len(data), data))
    inputs.write_text(json.dumps([data.hex() for data in short]))
    told = _done([sys.executable, "-m", "tests.fuzz.replay", "--telling", name, inputs])
    corpus.keep(name, [bytes.fromhex(line) for line in told.split()])


def _script(module: str, *arguments: str) -> list[str]:
    """Run a part in a process of its own; what it found."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    sys.stdout.flush()
    return [] if done.returncode == 0 else [f"{arguments[0]}: {module}: {done.stdout[-2000:]}{done.stderr[-4000:]}"]


def _done(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def _spelled(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Look for bytes that break a law.")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="of fuzzing a target (60)")
    parser.add_argument("--plant-seconds", type=int, default=600, help="for each planted bug, at most (600)")
    parser.add_argument(
        "--examples", type=int, default=100_000, help="of Hypothesis, shared by the targets; 0: none (100,000)"
    )
    parser.add_argument("--keep", action="store_true", help="keep what takes a new branch in the corpus")
    return parser


if __name__ == "__main__":
    importlib.import_module("atheris")  # said at once when the extra is missing
    sys.exit(main())
