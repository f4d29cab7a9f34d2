"""The first seed's eval of the focused block, as a tool. Law: hand labels are read and never written.

    python -m tests.evals.memory_inject replay [--labels FILE] [--before DIR] [--blocks DIR] [--store DIR]
    python -m tests.evals.memory_inject check  [--labels FILE] [--store DIR]
    python -m tests.evals.memory_inject label  --model NAME --cap-usd USD [--url URL] [--key-env NAME] …

`replay` scores two arms against the labels: the blocks of an earlier build (`--before`, one `<id>.txt` a case)
and those of this build, rendered now or read from `--blocks`. `check` exits 1 when a label names a note that the
store has not. `label` asks a judge model over an OpenAI-compatible endpoint which notes each prompt should bring
back. It spends at most `--cap-usd`: a call is not made when the dearest one so far would pass it. A call's cost is
what the endpoint says (`usage.cost`), or its tokens times `--usd-per-mtok IN OUT`; when neither can be counted
it stops. It writes only the cases it judged to `labels-judge.json` (those judged before are kept and not asked
again) and one row to the ledger, whatever ended it.

Exit codes: 0 done, 1 a finding, or stopped before the end, 2 usage.
"""

import argparse
import json
import math
import os
import re
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec

from .places import HERE, Place, place

FIXTURES: Final = HERE / "fixtures" / "memory-inject"
HEADING: Final = re.compile(r"^### (.+?) · (?:repo|global) · ", re.MULTILINE)
ROW: Final = re.compile(r"^- \[[^\n]*?\]\(([^\n]+?)\.md\)", re.MULTILINE)
ANSWER: Final = re.compile(r"\{.*\}", re.DOTALL)
TIMEOUT_S: Final = 120
MOST_TOKENS: Final = 400


class Label(msgspec.Struct, frozen=True):
    """A first message and the notes that it should bring back whole."""

    id: str
    prompt: str
    relevant: tuple[str, ...]


class Labels(msgspec.Struct, frozen=True):
    """A label file."""

    cases: tuple[Label, ...]


class StopError(Exception):
    """Why `label` went no further."""


def main(arguments: Sequence[str]) -> int:
    """Run a command; gives its exit code."""
    options = parser().parse_args(arguments)
    code: int = options.run(options)
    return code


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(prog="memory_inject", description="the first seed's eval of the focused block")
    commands = whole.add_subparsers(required=True)
    for name, run, line in (
        ("replay", replay, "score this build's blocks and an earlier build's"),
        ("check", check, "validate the note names of a label file"),
        ("label", label, "ask a judge model for labels, under a spending cap"),
    ):
        command = commands.add_parser(name, help=line)
        command.set_defaults(run=run)
        command.add_argument("--labels", type=Path, default=FIXTURES / "labels.json")
        command.add_argument("--store", type=Path, default=FIXTURES / "store")
        if name == "replay":
            command.add_argument("--before", type=Path, default=FIXTURES / "before")
            command.add_argument("--blocks", type=Path)
        if name == "label":
            command.add_argument("--model", required=True)
            command.add_argument("--cap-usd", type=dollars, required=True)
            command.add_argument("--url", default="https://openrouter.ai/api/v1")
            command.add_argument("--key-env", default="OPENROUTER_API_KEY")
            command.add_argument("--usd-per-mtok", type=float, nargs=2, metavar=("IN", "OUT"))
            command.add_argument("--out", type=Path, default=Path("labels-judge.json"))
            command.add_argument("--ledger", type=Path, default=Path("ledger.jsonl"))
    return whole


def dollars(text: str) -> float:
    """A cap that is one."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("an amount above 0")
    return value


def say(line: str) -> None:
    """One line on stdout."""
    sys.stdout.write(f"{line}\n")


def read_labels(path: Path) -> tuple[Label, ...]:
    """The cases of a label file."""
    return msgspec.json.decode(path.read_bytes(), type=Labels).cases


# -- replay --------------------------------------------------------------------------------------------------


class Arm(NamedTuple):
    """What the blocks of one build are worth, over all cases."""

    cases: int
    labelled: int
    bodied: int
    shown: int
    wrong: int
    unasked: int
    size: int

    @classmethod
    def of(cls, labels: Iterable[Label], blocks: Mapping[str, str]) -> "Arm":
        """Scores each case's block against its label."""
        total = cls(0, 0, 0, 0, 0, 0, 0)
        for case in labels:
            block = blocks[case.id]
            bodies, rows = HEADING.findall(block), ROW.findall(block)
            right = set(case.relevant)
            one = cls(
                cases=1,
                labelled=bool(right),
                bodied=not right.isdisjoint(bodies),
                shown=not right.isdisjoint([*bodies, *rows]),
                wrong=len(set(bodies) - right) if right else 0,
                unasked=len(bodies) if not right else 0,
                size=len(block.encode()),
            )
            total = cls(*(mine + its for mine, its in zip(total, one, strict=True)))
        return total


def replay(options: argparse.Namespace) -> int:
    """Print both arms."""
    labels = read_labels(options.labels)
    arms = {
        "before": {case.id: (options.before / f"{case.id}.txt").read_text("utf-8") for case in labels},
        "now": {case.id: (options.blocks / f"{case.id}.txt").read_text("utf-8") for case in labels}
        if options.blocks
        else render_all(place(options.store), labels),
    }
    say("arm     cases labelled  right body  right shown  wrong bodies  bodies unasked  bytes a block")
    for name, blocks in arms.items():
        arm = Arm.of(labels, blocks)
        say(
            f"{name:<7}{arm.cases:>6}{arm.labelled:>9}{arm.bodied:>12}{arm.shown:>13}{arm.wrong:>14}"
            f"{arm.unasked:>16}{arm.size // max(1, arm.cases):>15}"
        )
    return 0


def render_all(where: Place, labels: Iterable[Label]) -> dict[str, str]:
    """This build's block of each case; empty for a blank prompt."""
    blocks = {case.id: where.block(case.prompt) for case in labels}
    return {name: block.text if block else "" for name, block in blocks.items()}


# -- check ---------------------------------------------------------------------------------------------------


def check(options: argparse.Namespace) -> int:
    """Name every label that names no note, and every id that comes twice; 1 when there is any."""
    labels = read_labels(options.labels)
    names = note_names(place(options.store))
    ids = [case.id for case in labels]
    findings = [f"{case.id}: no note {name}" for case in labels for name in case.relevant if name not in names]
    findings += [f"{name}: twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    for finding in findings:
        say(finding)
    if not findings:
        say(f"{len(labels)} cases, every note named is there")
    return 1 if findings else 0


def note_names(where: Place) -> set[str]:
    """The names of a place's notes."""
    return {name for shelf in where.shelves for name in shelf.notes}


# -- label ---------------------------------------------------------------------------------------------------


def label(options: argparse.Namespace) -> int:
    """Judge the cases not judged yet, as far as the cap goes; 1 when it did not reach the last."""
    if options.out.resolve() == options.labels.resolve():
        say("--out is the file of the hand labels, which are never written")
        return 2
    where = place(options.store)
    judged = list(read_labels(options.out)) if options.out.exists() else []
    done = {case.id for case in judged}
    judge = Judge(options, where)
    stopped = None
    asked = 0
    try:
        for case in read_labels(options.labels):
            if case.id not in done:
                judged.append(judge.judged(case))
                asked += 1
                write(options.out, judged)
    except StopError as error:
        stopped = str(error)
    row = {
        "at": int(time.time()),
        "model": options.model,
        "judged": asked,
        "usd": round(judge.spent, 6),
        "cap_usd": options.cap_usd,
        "stopped": stopped,
    }
    with options.ledger.open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(row) + "\n")
    say(f"{asked} judged, ${judge.spent:.4f} of ${options.cap_usd}" + (f"; stopped: {stopped}" if stopped else ""))
    return 1 if stopped else 0


def write(path: Path, judged: Sequence[Label]) -> None:
    """Replace the file of judged cases, whole."""
    staged = path.with_name(f".{path.name}.tmp")
    staged.write_bytes(msgspec.json.format(msgspec.json.encode(Labels(tuple(judged))), indent=2) + b"\n")
    staged.replace(path)


class Judge:
    """A model that is asked which notes fit, and what that has cost so far."""

    def __init__(self, options: argparse.Namespace, where: Place) -> None:
        self.url = f"{options.url.rstrip('/')}/chat/completions"
        self.model: str = options.model
        self.cap: float = options.cap_usd
        self.prices: Sequence[float] | None = options.usd_per_mtok
        self.key = os.environ.get(options.key_env, "")
        self.names = note_names(where)
        self.index = "\n".join(
            f"- {name}: {card.hook}" for shelf in where.shelves for name, card in sorted(shelf.notes.items())
        )
        self.spent = 0.0
        self.dearest = 0.0

    def judged(self, case: Label) -> Label:
        """The case with the judge's label. Raises `StopError` when nothing more can or may be asked."""
        if self.spent + self.dearest >= self.cap:
            raise StopError("the cap")
        reply = self._ask(case.prompt)
        cost = self._cost(reply)
        if cost is None:
            raise StopError(f"the cost of {case.id} cannot be counted")
        self.spent += cost
        self.dearest = max(self.dearest, cost)
        return msgspec.structs.replace(case, relevant=self._names(case, reply))

    def _ask(self, prompt: str) -> Mapping[str, Any]:
        body = {
            "model": self.model,
            "temperature": 0,
            "max_tokens": MOST_TOKENS,
            "usage": {"include": True},
            "messages": [
                {
                    "role": "system",
                    "content": "A coding agent has these notes, each with the situation it is for:\n"
                    f"{self.index}\n\nGiven the user's first message, say which notes the agent must have read to"
                    ' do it right: at most 3, none if none matters. Answer with JSON only: {"relevant": ["name"]}',
                },
                {"role": "user", "content": prompt},
            ],
        }
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                reply = json.load(answer)
        except (OSError, ValueError) as error:
            raise StopError(f"the endpoint: {type(error).__name__}") from error
        if not isinstance(reply, dict):
            raise StopError("the endpoint: no JSON object")
        return reply

    def _cost(self, reply: Mapping[str, Any]) -> float | None:
        """What a call cost, in dollars; None when nobody can say."""
        usage = reply.get("usage")
        if not isinstance(usage, dict):
            return None
        cost = usage.get("cost")
        if is_count(cost):
            return float(cost)
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if self.prices is None or not is_count(read) or not is_count(written):
            return None
        usd_read, usd_written = self.prices
        return (read * usd_read + written * usd_written) / 1e6

    def _names(self, case: Label, reply: Mapping[str, Any]) -> tuple[str, ...]:
        """The notes that a reply names. Raises `StopError` for one that is no answer: it would never be one."""
        try:
            found = ANSWER.search(reply["choices"][0]["message"]["content"])
            names = json.loads(found[0])["relevant"] if found else None
        except (LookupError, TypeError, ValueError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) and name in self.names for name in names):
            raise StopError(f"the judge's answer to {case.id} names no notes of the store")
        return tuple(names)


def is_count(value: object) -> TypeGuard[float]:
    """Whether a value of a reply is an amount."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
