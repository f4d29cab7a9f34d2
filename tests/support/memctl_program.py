"""memctl as a process. Law: it meets a real socket and real pipes or terminals, only the daemon is a fake."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memd_client
from support.fake_daemon import Answer, failure, result

ROOT = Path(__file__).parents[2]
STREAMS = ("stdin", "stdout", "stderr")
SECONDS = 30

HELLO = {"version": "0.1.0", "protocol_min": 1, "protocol_max": 1, "capabilities": [], "pid": 4242}


@dataclass(frozen=True)
class Ran:
    """How a run of memctl ended: its exit code and what it wrote, byte for byte."""

    code: int
    raw_out: bytes
    raw_err: bytes

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.raw_out.decode()

    @property
    def err(self) -> str:
        """Standard error as text."""
        return self.raw_err.decode()


class Failure(dict[str, Any]):
    """An error member of a reply, for the table of `answers`."""

    def __init__(self, code: int, message: str, **data: object) -> None:
        super().__init__(code=code, message=message, data=data)


def answers(env: Mapping[str, str], table: Mapping[str, Any]) -> Answer:
    """An answer for each method of `table`: a result or a `Failure`; a list holds one for each time.

    `daemon.hello` is answered for the home of `env` without being in the table.
    """
    left = {method: list(value) if isinstance(value, list) else value for method, value in table.items()}
    left.setdefault("daemon.hello", {**HELLO, "home": memd_client.home_id(env)})

    def answer(request: dict[str, Any]) -> bytes:
        value = left[request["method"]]
        if isinstance(value, list):
            value = value.pop(0)
        return failure(request, value) if isinstance(value, Failure) else result(request, value)

    return answer


def command(*arguments: str | bytes) -> list[str | bytes]:
    """The command line that runs memctl with these arguments."""
    return [sys.executable, "-m", "memd.memctl", *arguments]


def memctl_env(env: Mapping[str, str]) -> dict[str, str]:
    """`env` with the tree under test as the place memd is imported from; no daemon starts by itself."""
    return {
        "MEMD_NO_AUTOSTART": "1",
        "TZ": "UTC",
        **env,
        "PYTHONPATH": f"{env['PYTHONPATH']}{os.pathsep}{ROOT}",
    }


def memctl(
    env: Mapping[str, str],
    *arguments: str | bytes,
    stdin: bytes = b"",
    cwd: Path | None = None,
) -> Ran:
    """Run memctl in pipes, `stdin` being all there is to read."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        env=memctl_env(env),
        cwd=cwd,
        timeout=SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def memctl_on_terminal(
    env: Mapping[str, str],
    *arguments: str,
    typed: str = "",
    width: int = 80,
    terminals: Collection[str] = STREAMS,
) -> Ran:
    """Run memctl with a terminal `width` cells wide for each stream of `terminals`, pipes for the others.

    `typed` waits on the terminal of stdin; it is not echoed, and line ends come as they were written.
    """
    ours, theirs = {}, {}
    for stream in STREAMS:
        if stream in terminals:
            ours[stream], theirs[stream] = _terminal(width)
        elif stream == "stdin":
            theirs[stream], ours[stream] = os.pipe()
        else:
            ours[stream], theirs[stream] = os.pipe()
    process = subprocess.Popen(
        command(*arguments),
        env=memctl_env(env),
        stdin=theirs["stdin"],
        stdout=theirs["stdout"],
        stderr=theirs["stderr"],
    )
    for descriptor in theirs.values():
        os.close(descriptor)
    os.write(ours["stdin"], typed.encode())
    if "stdin" not in terminals:
        os.close(ours.pop("stdin"))
    written: dict[str, bytes] = {}
    readers = [
        threading.Thread(target=lambda name=name: written.__setitem__(name, _all(ours[name])), daemon=True)
        for name in ("stdout", "stderr")
    ]
    for reader in readers:
        reader.start()
    try:
        code = process.wait(SECONDS)
    finally:
        process.kill()
        for reader in readers:
            reader.join()
        for descriptor in ours.values():
            os.close(descriptor)
    return Ran(code, written["stdout"], written["stderr"])


def _terminal(width: int) -> tuple[int, int]:
    """The two ends of a terminal that neither echoes nor changes line ends."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def _all(descriptor: int) -> bytes:
    """Everything until the other end is closed, which a terminal shows as an error."""
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
