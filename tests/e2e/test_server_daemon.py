"""The process itself: one a home, its socket and its lock, how it ends and what it says. SPEC section 15."""

import asyncio
import fcntl
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest

import memd
import memd_client
from memd import daemon
from memd.config import Config
from memd.lifetime import lifetime
from memd.log import LogLine
from memd.server import listen
from support.fake_verbs import SECRET, request
from support.serving import Client
from support.waiting import until

EXIT_WITHIN_S = 2.0
SAVE = {"markdown": "---\ndescription: one hook\ntype: user\n---\n\none body"}


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that is not there yet, at a path short enough for its socket."""
    with tempfile.TemporaryDirectory(prefix="memd-") as name:
        yield Path(name) / "home"


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("MEMD_", "XDG_"))}
    return {**kept, "MEMD_HOME": str(home), "MEMD_CONFIG": str(home / "config.toml"), **more}


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memd", *arguments]


class Daemon:
    """A daemon in a process of its own."""

    def __init__(self, home: Path, **more: str) -> None:
        env = environment(home, **more)
        self.path = Path(memd_client.socket_path(env))
        self.process = subprocess.Popen(program(), env=env, stderr=subprocess.PIPE, text=True, umask=0)
        assert self.process.stderr is not None
        self.log: IO[str] = self.process.stderr

    def client(self) -> Client:
        """A connected client, once the daemon listens."""
        until(lambda: self.process.poll() is not None or self._answers())
        return Client(self.path)

    def _answers(self) -> bool:
        try:
            Client(self.path).sock.close()
        except OSError:
            return False
        return True

    def end(self) -> tuple[int, str]:
        """Wait for the exit: its status and all that was logged."""
        log = self.log.read()
        return self.process.wait(20), log


@contextmanager
def running(home: Path, **more: str) -> Iterator[Daemon]:
    it = Daemon(home, **more)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.wait(20)
        it.log.close()


def run(home: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    """A daemon that is expected to exit by itself."""
    return subprocess.run(
        program(), env=environment(home, **more), capture_output=True, text=True, timeout=20, check=False
    )


def ask(client: Client, method: str, /, **params: object) -> Any:
    return client.ask(request(method, **params))["result"]


# -- alive -------------------------------------------------------------------------------------------------------


def test_a_daemon_makes_its_home_and_says_who_it_is(home: Path) -> None:
    with running(home) as it, it.client() as client:
        hello = ask(client, "daemon.hello", client="test", protocol=1)
        assert hello["pid"] == it.process.pid
        assert hello["home"] == memd_client.home_id(environment(home))
        assert hello["version"] == memd.__version__
        status = ask(client, "daemon.status")
        assert status["connections"] == 1
        assert status["findings"] == []
        assert (home / ".daemon.lock").read_text() == f"{it.process.pid}\n"
        for path in (home, home / "run", home / ".daemon.lock", it.path):
            assert path.stat().st_mode & 0o077 == 0


def test_a_protocol_that_is_not_served_is_named(home: Path) -> None:
    with running(home) as it, it.client() as client:
        error = client.ask(request("daemon.hello", protocol=9))["error"]
        assert (error["code"], error["data"]["kind"]) == (-32011, "protocol")


def test_notes_outlive_a_daemon(home: Path, tmp_path: Path) -> None:
    with running(home) as it:
        with it.client() as client:
            saved = ask(client, "memory.save", cwd=str(tmp_path), **SAVE)
        it.process.kill()
        it.process.wait(20)
        assert it.path.exists()
    with running(home) as it, it.client() as client:
        assert ask(client, "memory.read", cwd=str(tmp_path), name=saved["name"])["text"] == "one body"


def test_a_config_that_does_not_parse_is_a_finding_and_no_more(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("save_cap = [\n")
    with running(home) as it:
        with it.client() as client:
            [finding] = ask(client, "daemon.status")["findings"]
        assert finding["kind"] == "config"
        it.process.terminate()
        status, log = it.end()
    assert status == 0
    assert re.search(r"^<4>config: ", log, re.MULTILINE)


# -- one a home --------------------------------------------------------------------------------------------------


def test_a_second_instance_exits_0_and_says_who_runs(home: Path) -> None:
    with running(home) as it, it.client() as client:
        second = run(home)
        assert second.returncode == 0
        assert f"<6>memd already serves {home}: process {it.process.pid}\n" in second.stderr
        assert ask(client, "daemon.hello")["pid"] == it.process.pid
        elsewhere = run(home, MEMD_SOCKET=str(home / "other.sock"))
        assert elsewhere.returncode == 0
        assert str(it.process.pid) in elsewhere.stderr
        assert not (home / "other.sock").exists()


def test_the_lock_of_a_home_is_not_taken_for_another_s(home: Path) -> None:
    home.mkdir()
    with (home / ".daemon.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = run(home)
    assert second.returncode == 0
    assert "process unknown" in second.stderr


def test_a_socket_that_another_home_s_daemon_serves_is_left_to_it(home: Path) -> None:
    with running(home) as it, it.client() as client:
        other = run(home.parent / "other", MEMD_SOCKET=str(it.path))
        assert other.returncode == 1
        assert "another process answers at the socket's path" in other.stderr
        assert ask(client, "daemon.hello")["pid"] == it.process.pid


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MEMD_SOCKET": "/tmp/" + "x" * 103}, "MEMD_SOCKET"),
        ({"MEMD_SOCKET": "relative.sock"}, "MEMD_SOCKET"),
        ({"MEMD_HOME": "relative"}, "MEMD_HOME"),
    ],
)
def test_a_place_that_cannot_be_used_is_said_with_status_2(home: Path, variables: dict[str, str], said: str) -> None:
    refused = subprocess.run(
        program(), env={**environment(home), **variables}, capture_output=True, text=True, timeout=20, check=False
    )
    assert refused.returncode == 2
    assert refused.stderr.startswith("<3>")
    assert said in refused.stderr
    assert not home.exists()


def test_a_home_that_cannot_be_made_is_said_with_status_1(home: Path) -> None:
    home.parent.joinpath("file").write_text("")
    refused = run(home.parent / "file" / "home")
    assert refused.returncode == 1
    assert refused.stderr.startswith("<3>cannot serve ")
    assert "Traceback" not in refused.stderr


# -- the end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(home: Path, number: signal.Signals) -> None:
    with running(home) as it, it.client() as client:
        assert ask(client, "daemon.hello")
        begun = time.monotonic()
        it.process.send_signal(number)
        status, log = it.end()
        assert time.monotonic() - begun < EXIT_WITHIN_S
        assert status == 0
        assert f"<6>{number.name}: finishing\n" in log
        assert client.has_ended()
        assert not it.path.exists()
        assert (home / ".daemon.lock").exists()


def test_a_stop_is_answered_and_ends_it(home: Path) -> None:
    with running(home) as it, it.client() as client:
        assert ask(client, "daemon.stop") == {"stopping": True}
        assert client.has_ended()
        assert it.end()[0] == 0


def test_a_write_that_never_ends_does_not_hold_the_exit(home: Path, tmp_path: Path) -> None:
    with running(home) as it, it.client() as client:
        ask(client, "memory.save", cwd=str(tmp_path), **SAVE, fields={"scope": "global"})
        with (home / "memory" / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            client.send(request("memory.save", cwd=str(tmp_path), **SAVE, fields={"scope": "global", "name": "b"}))
            until(lambda: _holds(it.process.pid, home / "memory" / ".lock"))
            begun = time.monotonic()
            it.process.terminate()
            status, log = it.end()
            assert time.monotonic() - begun < EXIT_WITHIN_S
        assert status == 1
        assert "<3>a write does not end: exiting without it\n" in log
        assert not it.path.exists()
    with running(home) as it, it.client() as client:
        assert ask(client, "memory.verify", cwd=str(tmp_path))["ok"]


def _holds(pid: int, path: Path) -> bool:
    """Whether a process waits at a lock file: it has the file open."""
    if not Path("/proc/self/fd").exists():
        listed = subprocess.run(["lsof", "-p", str(pid)], capture_output=True, text=True, check=False)
        return str(path) in listed.stdout
    return str(path) in {os.path.realpath(link) for link in Path(f"/proc/{pid}/fd").iterdir()}


def test_a_save_that_runs_at_the_stop_is_finished_and_answered(home: Path, tmp_path: Path) -> None:
    with running(home) as it, it.client() as client:
        ask(client, "daemon.hello")
        for n in range(20):
            line = request("memory.save", n, cwd=str(tmp_path), **SAVE, fields={"name": f"note-{n}"})
            client.send(line)
        client.line()
        it.process.terminate()
        answered = 1
        while client.line():
            answered += 1
        assert it.end()[0] == 0
    with running(home) as it, it.client() as client:
        assert ask(client, "memory.list", cwd=str(tmp_path))["total"] == answered
        assert ask(client, "memory.verify", cwd=str(tmp_path))["ok"]


# -- a look around -----------------------------------------------------------------------------------------------


def test_a_daemon_nobody_can_reach_ends(home: Path) -> None:
    path = home / "run" / "memd.sock"

    async def serve() -> None:
        with lifetime(home), listen(path) as listener, anyio.fail_after(20):
            path.unlink()
            path.write_text("another's")
            await daemon.run(home, Config(), listener, heeds_signals=False, look_s=0.01)

    anyio.run(serve)
    assert path.read_text() == "another's"


def test_a_look_rescans_the_stores_and_the_daemon_goes_on(home: Path) -> None:
    stopped: list[str] = []
    path = home / "run" / "memd.sock"

    def last_scan() -> object:
        with Client(path) as client:
            return ask(client, "daemon.status")["last_scan_s"]

    def stop() -> None:
        until(lambda: last_scan() is not None)
        with Client(path) as client:
            ask(client, "daemon.stop")

    async def serve() -> None:
        with lifetime(home), listen(path) as listener:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, stop)
                await daemon.run(
                    home,
                    Config(),
                    listener,
                    at_stop=lambda: stopped.append("stop"),
                    heeds_signals=False,
                    look_s=0.01,
                )

    anyio.run(serve)
    assert stopped == ["stop"]


# -- the log -----------------------------------------------------------------------------------------------------


def _logged(level: int, text: str, error: BaseException | None = None) -> str:
    info = None if error is None else (type(error), error, error.__traceback__)
    return LogLine().format(logging.LogRecord("memd", level, __file__, 1, text, (), info))


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.DEBUG, 7), (logging.INFO, 6), (logging.WARNING, 4), (logging.ERROR, 3), (logging.CRITICAL, 2)],
)
def test_a_log_line_has_its_priority_in_front(level: int, priority: int) -> None:
    assert _logged(level, "words") == f"<{priority}>words"


def test_a_record_is_one_line() -> None:
    assert _logged(logging.INFO, "one\ntwo\r\n<0>three") == "<6>one two <0>three"


def test_an_exception_s_text_is_not_logged() -> None:
    line = _logged(logging.ERROR, "it failed", ValueError(SECRET))
    assert line.startswith("<3>it failed: builtins.ValueError at ")
    assert SECRET not in line


def test_what_the_event_loop_reports_is_logged_without_its_text(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = home / "run" / "memd.sock"

    def fail() -> None:
        raise ValueError(SECRET)

    async def serve() -> None:
        with lifetime(home), listen(path) as listener, anyio.fail_after(20):
            path.unlink()
            asyncio.get_running_loop().call_later(0, fail)
            await daemon.run(home, Config(), listener, heeds_signals=False, look_s=0.01)

    anyio.run(serve)
    assert "the event loop met builtins.ValueError at " in caplog.text
    assert SECRET not in caplog.text


# -- the command line --------------------------------------------------------------------------------------------


def test_version_and_help_start_nothing(home: Path) -> None:
    for word, text in (("--version", f"memd {memd.__version__}\n"), ("--help", "usage: memd")):
        told = subprocess.run(
            program(word), env=environment(home), capture_output=True, text=True, timeout=20, check=True
        )
        assert told.stdout.startswith(text)
        assert not home.exists()


def test_a_word_too_many_is_a_usage_error(home: Path) -> None:
    told = subprocess.run(
        program("serve"), env=environment(home), capture_output=True, text=True, timeout=20, check=False
    )
    assert told.returncode == 2
    assert not home.exists()
