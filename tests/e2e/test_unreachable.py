"""A daemon that is stuck, is not memd, or cannot be where it should: each is said, and nobody waits for ever."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import memd_client
from memd.memctl import ctl, front
from memd_client import wire
from support.daemon import Daemon, daemon_home
from support.fake_daemon import FakeDaemon, failure
from support.waiting import until


def memd(env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """A daemon that is expected to exit by itself."""
    return subprocess.run(
        [sys.executable, "-m", "memd"], env=env, cwd="/", capture_output=True, text=True, timeout=30, check=False
    )


def memctl(env: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A run of memctl."""
    command = [sys.executable, "-m", "memd.memctl", *arguments]
    return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=30, check=False)


@contextmanager
def stopped(daemon: Daemon) -> Iterator[None]:
    """The daemon's process is stopped meanwhile, as a debugger or a suspended laptop's cgroup does."""
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


# -- a daemon that is elsewhere ------------------------------------------------------------------------------------


def test_a_daemon_whose_socket_is_gone_is_named_by_who_would_start_another(daemon: Daemon) -> None:
    assert daemon.process is not None
    daemon.socket.unlink()
    with pytest.raises(memd_client.Unavailable) as caught:
        memd_client.connect(daemon.env)
    assert f"(process {daemon.process.pid}) and does not answer at {daemon.socket}" in caught.value.message
    daemon.socket.mkdir()
    with pytest.raises(memd_client.Unavailable, match="what is there is no socket; move it away"):
        memd_client.connect(daemon.env)
    assert daemon.process.poll() is None


# -- a daemon that is stuck --------------------------------------------------------------------------------------


def test_a_client_of_a_stopped_daemon_gives_up_and_says_so(daemon: Daemon) -> None:
    with memd_client.connect(daemon.env, autostart=False, timeout=0.3) as connection:
        with stopped(daemon):
            with pytest.raises(memd_client.NoAnswer) as caught:
                connection.call("memory.list", {"cwd": str(daemon.repo)})
            for word in ("0.3 s", str(daemon.socket), "stuck"):
                assert word in caught.value.message
            with pytest.raises(memd_client.NoAnswer):  # one that connects only now is let in by the kernel
                memd_client.Connection(daemon.env, autostart=False, timeout=0.3).call("daemon.status")
        until(lambda: connection.call("memory.list", {"cwd": str(daemon.repo)})["total"] == 0)


@pytest.mark.parametrize("command", [["list"], ["check"], ["rebuild", "--yes"], ["status"], ["version"], ["stop"]])
def test_memctl_gives_up_on_a_stopped_daemon_with_exit_code_5(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.setattr(ctl, "_TIMEOUT", 0.3)
    monkeypatch.setattr("memd.memctl.running._TIMEOUT", 0.3)
    monkeypatch.setattr(wire, "LOOK", 0.3)
    for name, value in daemon.env.items():
        if name != "PYTHONWARNINGS":
            monkeypatch.setenv(name, value)
    with stopped(daemon):
        assert front.run([*command, "-C", str(daemon.repo)]) == 5
    told = capfd.readouterr()
    assert told.out == ""
    assert "no answer from" in told.err
    assert "Traceback" not in told.err


def test_doctor_names_the_process_that_is_stuck_and_not_a_restart_that_it_does_not_heed(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert daemon.process is not None
    monkeypatch.setattr("memd.memctl.running._TIMEOUT", 0.3)
    monkeypatch.setattr(wire, "LOOK", 0.3)
    for name, value in daemon.env.items():
        if name != "PYTHONWARNINGS":
            monkeypatch.setenv(name, value)
    with stopped(daemon):
        assert front.run(["doctor", "-C", str(daemon.repo)]) == 1
    told = capfd.readouterr().out
    assert f"`kill -9 {daemon.process.pid}`, then `memctl start`" in told
    assert "memctl restart" not in told


# -- what is at the socket's path and is not memd ----------------------------------------------------------------


@pytest.mark.parametrize(
    "says",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"220 ready\n", b"\0\xff\n", b"[]\n", b'"hello"\n', b'{"id":1}\n', b"{}\n"],
)
def test_another_program_at_the_socket_is_told_from_memd(daemon: Daemon, says: bytes) -> None:
    daemon.terminate()
    with FakeDaemon(str(daemon.socket)) as other:
        other.answer = lambda _request: says
        done = memctl(daemon.env, "list", "-C", str(daemon.repo), "--no-autostart")
        assert done.returncode == 5
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr
        with memd_client.connect(daemon.env, autostart=False) as connection, pytest.raises(memd_client.BadReply):
            connection.call("memory.list", {"cwd": str(daemon.repo)})
        refused = memd(daemon.env)
        assert refused.returncode == 1
        assert "another process answers at the socket's path" in refused.stderr


def test_a_socket_that_another_program_put_in_our_place_is_not_taken_away(daemon: Daemon) -> None:
    path = daemon.socket
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        inode = path.lstat().st_ino
        daemon.terminate()
        assert path.lstat().st_ino == inode


@pytest.mark.parametrize("command", [["list"], ["version"], ["save", "--type", "user", "/dev/null"]])
def test_memctl_names_a_protocol_that_the_daemon_does_not_serve(command: list[str]) -> None:
    with daemon_home() as daemon:
        daemon.env["MEMD_SOCKET"] = str(daemon.root / "memd.sock")  # outside the home: it is asked who it is
        with FakeDaemon(daemon.env["MEMD_SOCKET"]) as older:
            said = "daemon.hello: protocol 1 is not served, 7 to 9 are; install a client and a daemon of one version"
            older.answer = lambda request: failure(request, {"code": -32011, "message": said})
            done = memctl(daemon.env, *command, "-C", str(daemon.repo))
            assert (done.returncode, done.stdout) == (5, "")
            assert said in done.stderr
            assert set(older.methods) == {"daemon.hello"}


# -- places that cannot be used ----------------------------------------------------------------------------------


def test_a_read_only_home_is_said_by_the_daemon_and_by_the_client_that_would_start_it() -> None:
    with daemon_home() as daemon:
        closed = daemon.root / "closed"
        closed.write_text("")  # no user, root neither, can make a directory in a file
        daemon.env["MEMD_HOME"] = str(closed / "home")
        refused = memd(daemon.env)
        assert refused.returncode == 1
        assert refused.stderr.startswith("<3>cannot serve ")
        assert "Traceback" not in refused.stderr
        done = memctl(daemon.env, "list", "-C", str(daemon.repo))
        assert done.returncode == 5
        assert str(closed) in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("value", [None, "", "relative/run", "/nowhere/at/all", "{loose}", "{file}", "{link}"])
def test_without_a_runtime_directory_of_ours_both_sides_meet_elsewhere(value: str | None) -> None:
    with daemon_home() as daemon:
        del daemon.env["MEMD_HOME"]
        loose, file, link = (daemon.root / name for name in ("loose", "file", "link"))
        loose.mkdir(mode=0o700)
        loose.chmod(0o755)
        file.write_text("")
        tight = daemon.root / "tight"
        tight.mkdir(mode=0o700)
        link.symlink_to(tight)
        if value is not None:
            daemon.env["XDG_RUNTIME_DIR"] = value.format(loose=loose, file=file, link=link)
        daemon.start()  # and is reached where the client looks
        assert daemon.root / "user" in daemon.socket.parents or Path("/run/user") in daemon.socket.parents
        assert f" at {daemon.socket}" in daemon.log
        assert list(loose.iterdir()) == list(tight.iterdir()) == []


def test_a_runtime_directory_too_long_for_a_socket_is_named_by_all_three() -> None:
    root = Path(tempfile.mkdtemp(prefix="memd-e2e-", dir="/tmp"))
    try:
        runtime = root / ("deep" * 25)
        runtime.mkdir(mode=0o700)
        env = {"HOME": str(root), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.environ["PATH"]}
        path = str(runtime / "memd" / "memd.sock")
        with pytest.raises(memd_client.SocketPathTooLong) as caught:
            memd_client.connect(env)
        server, client = memd(env), memctl(env, "list")
        assert (server.returncode, client.returncode) == (2, 5)
        for text in (caught.value.message, server.stderr, client.stderr):
            for word in (path, str(len(path)), "MEMD_SOCKET"):
                assert word in text
        short = env | {"MEMD_SOCKET": str(root / "s")}
        with subprocess.Popen([sys.executable, "-m", "memd"], env=short, stderr=subprocess.PIPE) as process:
            until(lambda: (root / "s").exists())
            with memd_client.connect(short, autostart=False) as connection:
                assert connection.call("daemon.status")["pid"] == process.pid
            process.terminate()
            process.communicate(timeout=20)
    finally:
        shutil.rmtree(root)


# -- configs that cannot be used ---------------------------------------------------------------------------------


CONFIGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "broken": (lambda path: path.write_bytes(b"save_cap =\n"), "does not parse"),
    "not UTF-8": (lambda path: path.write_bytes(b"# \xff\n"), "not UTF-8"),
    "deep": (lambda path: path.write_bytes(b"a." * 20_000 + b"a = 1\n"), "does not parse"),
    "huge": (lambda path: path.write_bytes(b"# x\n" * 50_000), "longer than"),
    "a directory": (lambda path: path.mkdir(), "not a regular file"),
    "a FIFO": (lambda path: os.mkfifo(path), "not a regular file"),
    "a loop": (lambda path: path.symlink_to(path), "does not read"),
    "a wrong value": (lambda path: path.write_bytes(b'save_cap = "three"\n'), "save_cap must be"),
    "an unknown key": (lambda path: path.write_bytes(b"save_kap = 3\n"), "nearest known one is save_cap"),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_no_config_keeps_the_daemon_from_starting_and_each_is_told(kind: str) -> None:
    make, said = CONFIGS[kind]
    with daemon_home() as daemon:
        config = daemon.root / "config.toml"
        make(config)
        daemon.env["MEMD_CONFIG"] = str(config)
        daemon.start()
        [finding] = daemon_findings(daemon)
        assert finding["kind"] == "config"
        assert said in finding["reason"]
        assert str(daemon.root) not in finding["reason"]
        assert said in daemon.log
        daemon.save("note", "words")
        assert daemon.found("words") == ["note"]
        done = memctl(daemon.env, "status")
        assert done.returncode == 0
        assert said in done.stdout


def daemon_findings(daemon: Daemon) -> list[dict[str, str]]:
    """The findings of `daemon.status`."""
    with daemon.connect() as connection:
        findings: list[dict[str, str]] = connection.call("daemon.status")["findings"]
        return findings
