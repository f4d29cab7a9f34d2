"""Autostart. Law: whoever comes first starts one daemon, which holds nothing of its starter's (SPEC 13)."""

import fcntl
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import memd_client
from memd_client import starting, systemd
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.waiting import until

SCRIPT = str(Path(__file__).parents[1] / "support" / "fake_daemon.py")
MISSING = ["/nonexistent/memd"]


class Starter:
    """A home without a daemon, and the command that starts a fake one there."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.home = Path(env["MEMD_HOME"])
        self.path = memd_client.socket_path(env)
        self.log = Path(memd_client.log_path(env))
        self.command = [sys.executable, "-S", SCRIPT, self.path, str(self.home / "report")]

    @property
    def reports(self) -> list[dict[str, Any]]:
        """What the daemons that started say of themselves."""
        return [json.loads(line) for line in (self.home / "report").read_text().splitlines()]

    def start(self, command: list[str] | None = None) -> None:
        """Start and let go of the connection."""
        starting.start(self.env, self.path, command or self.command).close()

    def stop(self) -> None:
        """Stop whoever answers."""
        quiet = self.env | {"MEMD_NO_AUTOSTART": "1"}
        with suppress(memd_client.Unavailable):
            with memd_client.connect(quiet) as memd:
                memd.notify("daemon.stop")
            until(lambda: not Path(self.path).exists())  # before its directory goes


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Starter]:
    monkeypatch.setattr(systemd, "UNIT_DIRECTORIES", ())
    with client_home() as env:
        made = Starter(env)
        yield made
        made.stop()


def test_a_started_daemon_answers_with_its_output_in_the_log(starter: Starter) -> None:
    wire = starting.start(starter.env, starter.path, starter.command)
    assert wire.call("memory.list", {"limit": 1}, 10) == {"limit": 1}
    wire.close()
    until(lambda: starter.log.read_text() == "listening\n")


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o277])
def test_what_a_start_makes_is_closed_to_others_and_open_to_us(starter: Starter, umask: int) -> None:
    before = os.umask(umask)
    try:
        _start_deep(starter)
    finally:
        os.umask(before)


def test_a_log_that_was_open_to_others_is_closed(starter: Starter) -> None:
    starter.home.mkdir()
    starter.log.touch()
    starter.log.chmod(0o644)
    starter.start()
    assert stat.S_IMODE(starter.log.stat().st_mode) == 0o600


def _start_deep(starter: Starter) -> None:
    starter.env["MEMD_HOME"] = str(starter.home / "deep" / "er")
    deep = Starter(starter.env)
    deep.start()
    made = [starter.home, starter.home / "deep", deep.home]
    assert [stat.S_IMODE(place.stat().st_mode) for place in made] == [0o700] * 3
    files = [deep.home / ".start.lock", deep.log]
    assert [stat.S_IMODE(place.stat().st_mode) for place in files] == [0o600] * 2
    deep.stop()


def test_a_started_daemon_inherits_nothing(starter: Starter) -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.set_inheritable(write, True)
    starter.start()
    os.close(read)
    os.close(write)
    (report,) = starter.reports
    log = [starter.log.stat().st_ino]
    null = [Path(os.devnull).stat().st_rdev]
    # The report itself is written after the descriptors were looked at.
    assert report["descriptors"] == {"0": null, "1": log, "2": log}


def test_a_started_daemon_is_nobodys_child(starter: Starter) -> None:
    starter.start()
    (report,) = starter.reports
    assert report["parent"] != os.getpid()
    assert report["session"] != os.getsid(0)
    assert report["directory"] == "/"


def test_the_environment_passes_through_but_for_the_service_managers_part(
    starter: Starter,
) -> None:
    starter.env |= {"XDG_DATA_HOME": "/x", "NOTIFY_SOCKET": "/n", "LISTEN_FDS": "1"}
    starter.env |= {"LISTEN_PID": "1", "WATCHDOG_USEC": "1", "MEMD_CONFIG": "/c"}
    starter.start()
    seen = starter.reports[0]["environment"]
    passed = {"HOME", "MEMD_CONFIG", "MEMD_HOME", "PATH", "XDG_DATA_HOME"}
    assert {name: seen.get(name) for name in passed} == {name: starter.env[name] for name in passed}
    assert not seen.keys() & starting.OF_OUR_UNIT


CALLER = """
import sys
from memd_client import starting, systemd, socket_path
import os
systemd.UNIT_DIRECTORIES = ()
starting.start(os.environ, socket_path(), sys.argv[1:]).close()
"""


def test_a_caller_with_pipes_returns_at_once(starter: Starter) -> None:
    """Reading a pipe to its end waits for everyone who holds it: a daemon that did would hang this test."""
    command = [sys.executable, "-c", CALLER, *starter.command]
    done = subprocess.run(command, env=starter.env, input="", capture_output=True, text=True, timeout=20, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    os.kill(starter.reports[0]["pid"], 0)


RACERS = """
import os, sys, threading
from memd_client import starting, systemd, socket_path
systemd.UNIT_DIRECTORIES = ()
barrier = threading.Barrier(10)
answers = []
def race():
    barrier.wait()
    wire = starting.start(os.environ, socket_path(), sys.argv[1:])
    answers.append(wire.call("memory.list", {}, 20))
    wire.close()
threads = [threading.Thread(target=race) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert answers == [{}] * 10, answers
"""


def test_fifty_racing_clients_start_one_daemon(starter: Starter) -> None:
    command = [sys.executable, "-c", RACERS, *starter.command]
    racers = [subprocess.Popen(command, env=starter.env) for _ in range(5)]
    assert [racer.wait(30) for racer in racers] == [0] * 5
    assert len(starter.reports) == 1


def test_the_start_lock_is_free_again_and_stays(starter: Starter) -> None:
    starter.start()
    lock = starter.home / ".start.lock"
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    inode = lock.stat().st_ino
    starter.start()
    assert lock.stat().st_ino == inode
    assert len(starter.reports) == 1, "who answers is not started again"


def test_whoever_waits_for_another_start_takes_its_daemon(starter: Starter) -> None:
    starter.home.mkdir()
    with (starter.home / ".start.lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with FakeDaemon(starter.path) as daemon:
            starter.start(MISSING)
            until(lambda: daemon.connections == 1)


def test_whoever_has_the_lock_looks_again(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client may start a daemon and let the lock go just before we take it."""
    started: list[FakeDaemon] = []

    def lock_just_after_another(lock: int) -> bool:
        started.append(FakeDaemon(starter.path))
        return True

    monkeypatch.setattr(starting, "_try_lock", lock_just_after_another)
    starter.start(MISSING)
    started[0].stop()
    assert not starter.log.exists(), "nothing was spawned"


def test_another_start_that_takes_too_long_is_said(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "TURN_WAIT", 0.05)
    starter.home.mkdir()
    with (starter.home / ".start.lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(memd_client.Unavailable, match="another client is starting memd"):
            starter.start()


def test_a_daemon_that_does_not_come_up_points_at_the_log(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "WAIT", 0.05)
    with pytest.raises(memd_client.Unavailable) as caught:
        starter.start(MISSING)
    assert str(starter.log) in caught.value.message
    assert starter.path in caught.value.message
    until(lambda: MISSING[0] in starter.log.read_text())


def test_a_home_that_cannot_be_made_is_said(starter: Starter) -> None:
    Path(starter.home.parent, "file").touch()
    starter.env["MEMD_HOME"] = f"{starter.home.parent}/file/home"
    with pytest.raises(memd_client.Unavailable, match=r"starting it failed: .*file"):
        starting.start(starter.env, starter.path, starter.command)


def test_a_connection_starts_the_daemon_and_goes_on(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "find_command", lambda env: starter.command)
    with memd_client.connect(starter.env) as memd:
        assert memd.call("memory.save", {"n": 1}) == {"n": 1}
        memd.notify("daemon.stop")
        until(lambda: not Path(starter.path).exists())
        assert memd.call("memory.save", {"n": 2}) == {"n": 2}
    assert len(starter.reports) == 2


# The log


def test_a_long_log_is_cut_to_its_last_lines_before_a_start(starter: Starter) -> None:
    starter.home.mkdir()
    line = "0123456789\n"
    starter.log.write_text(line * (1024 * 1024 // len(line)) + "the last before\n")
    inode = starter.log.stat().st_ino
    starter.start()
    until(lambda: starter.log.read_text().endswith("listening\n"))
    kept = starter.log.read_text().splitlines(keepends=True)
    assert kept[-2:] == ["the last before\n", "listening\n"]
    assert set(kept[:-2]) == {line}
    assert starter.log.stat().st_size <= starting.LOG_KEPT + len("listening\n")
    assert starter.log.stat().st_ino == inode


@pytest.mark.parametrize("size", [0, 1, starting.LOG_LIMIT])
def test_a_log_within_its_limit_is_left_alone(tmp_path: Path, size: int) -> None:
    log = tmp_path / "memd.log"
    log.write_bytes(b"x" * size)
    with log.open("a+b") as file:
        starting.trim_log(file.fileno())
    assert log.stat().st_size == size


def test_a_log_of_one_endless_line_is_cut_too(tmp_path: Path) -> None:
    log = tmp_path / "memd.log"
    log.write_bytes(b"x" * (starting.LOG_LIMIT + 1))
    with log.open("a+b") as file:
        starting.trim_log(file.fileno())
    assert log.stat().st_size == starting.LOG_KEPT


def test_a_cut_log_leaves_room_under_a_mebibyte() -> None:
    assert starting.LOG_KEPT < starting.LOG_LIMIT <= 1024 * 1024 // 2


# What is started


def test_the_memd_of_this_python_comes_first(starter: Starter) -> None:
    assert starting.find_command(starter.env) == [sys.executable, "-P", "-m", "memd"]


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)
    return path


def test_else_the_memd_on_the_path(starter: Starter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [])
    script = executable(tmp_path / "bin" / "memd")
    assert starting.find_command({"PATH": f"/nowhere:{script.parent}"}) == [str(script)]
    monkeypatch.chdir(tmp_path)
    assert starting.find_command({"PATH": "bin"}) == [str(script)], "the daemon works in /"


@pytest.mark.parametrize("place", ["", "."])
def test_a_memd_in_the_current_directory_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    (tmp_path / "memd").mkdir()
    (tmp_path / "memd" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [place])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(memd_client.Unavailable, match="pip install memd"):
        starting.find_command({"PATH": ""})


def test_a_directory_that_is_no_package_is_not_memd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "memd").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(memd_client.Unavailable, match="pip install memd"):
        starting.find_command({"PATH": ""})


def test_an_embedded_python_without_a_name_is_not_run(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(memd_client.Unavailable, match="pip install memd"):
        starting.find_command({"PATH": ""})


# systemd


@pytest.fixture
def systemctl(starter: Starter, tmp_path: Path) -> Path:
    """The file a fake `systemctl` on PATH writes its arguments to; it then does what `act` says."""
    asked = tmp_path / "asked"
    act = tmp_path / "act"
    act.touch()
    executable(tmp_path / "bin" / "systemctl", f'#!/bin/sh\necho "$@" >>{asked}\n. {act}\n')
    starter.env["PATH"] = f"{tmp_path / 'bin'}:{starter.env['PATH']}"
    return asked


def install_unit(starter: Starter, listen: str, directory: str = ".config/systemd/user") -> None:
    place = Path(starter.env["HOME"], directory)
    place.mkdir(parents=True)
    (place / "memd.socket").write_text(f"[Socket]\n# ListenStream=/x\n ListenStream = {listen}\n")


@pytest.mark.parametrize("directory", [".config/systemd/user", ".local/share/systemd/user"])
def test_an_installed_socket_unit_is_started(starter: Starter, systemctl: Path, directory: str) -> None:
    install_unit(starter, starter.path, directory)
    daemon = " ".join(starter.command)
    (systemctl.parent / "act").write_text(
        f"{daemon} >/dev/null 2>$HOME/said </dev/null &\nuntil grep -qs listening $HOME/said; do :; done\n"
    )
    starter.start(MISSING)
    assert systemctl.read_text() == "--user start memd.socket\n"
    assert len(starter.reports) == 1
    assert not starter.log.exists()


@pytest.mark.parametrize("listen", ["/elsewhere/memd.sock", "%t/memd/memd.sock", ""])
def test_a_socket_unit_that_listens_elsewhere_is_none_of_ours(starter: Starter, systemctl: Path, listen: str) -> None:
    install_unit(starter, listen)
    starter.start()
    assert not systemctl.exists()
    assert len(starter.reports) == 1


def test_without_a_unit_systemd_is_not_asked(starter: Starter, systemctl: Path) -> None:
    starter.start()
    assert not systemctl.exists()


def test_a_socket_unit_whose_file_was_removed_is_started_anew(starter: Starter, systemctl: Path) -> None:
    install_unit(starter, starter.path)
    daemon = " ".join(starter.command)
    (systemctl.parent / "act").write_text(
        f"test $2 = restart || exit 0\n"
        f"{daemon} >/dev/null 2>$HOME/said </dev/null &\nuntil grep -qs listening $HOME/said; do :; done\n"
    )
    starter.start(MISSING)
    assert systemctl.read_text() == "--user start memd.socket\n--user restart memd.socket\n"
    assert len(starter.reports) == 1


@pytest.mark.parametrize("act", ["exit 1", "exit 0"])
def test_a_unit_that_does_not_come_up_is_made_up_for(starter: Starter, systemctl: Path, act: str) -> None:
    install_unit(starter, starter.path)
    (systemctl.parent / "act").write_text(act)
    starter.start()
    assert systemctl.exists()
    assert len(starter.reports) == 1


def test_a_systemd_that_hangs_is_not_waited_for(
    starter: Starter, systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_unit(starter, starter.path)
    (systemctl.parent / "act").write_text("exec tail -f /dev/null")
    monkeypatch.setattr(systemd, "WAIT", 0.05)
    starter.start()
    assert len(starter.reports) == 1


def test_specifiers_of_a_unit(starter: Starter, tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    env = {"HOME": "/u", "XDG_RUNTIME_DIR": str(runtime)}
    unit = tmp_path / "memd.socket"
    unit.write_text("ListenStream=%t/memd/memd.sock\nListenStream=%h/x\n")
    expected = [memd_client.socket_path(env), "/u/x"]
    assert systemd.listens_at(env, str(unit)) == expected
