"""Another user of this machine: whatever the modes are, they get nothing of ours, and we tell them nothing (SPEC 12).

As root, so that there is another user: a forked child of this process becomes `nobody`.
"""

import json
import os
import pickle
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

import memd_client
from memd.verbs import VERBS
from support.daemon import Daemon, running_daemon
from support.fake_daemon import FakeDaemon
from support.fake_verbs import request

NOBODY = 65534
T = TypeVar("T")
MARK = "The words that nobody else may see."


def as_another(work: Callable[[], T]) -> T:
    """What `work` gives in a child process that is `nobody`. Raises what it raises."""
    assert os.geteuid() == 0, "run this as root: only root can become another user"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            outcome: tuple[bool, object] = True, work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is asked for
            outcome = False, error
        os.write(write, pickle.dumps(outcome))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        fine, value = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    if not fine:
        raise value
    result: T = value
    return result


@pytest.fixture
def filled() -> Iterator[Daemon]:
    """A daemon with notes, versions, a session and counts; its root directory lets others through."""
    with running_daemon() as daemon:
        daemon.root.chmod(0o755)
        daemon.save("note", MARK)
        daemon.save("note", MARK + " Twice.")
        daemon.save("everywhere", MARK, scope="global")
        daemon.call("memory.read", name="note")
        daemon.call("session.start", session="s-1")
        yield daemon


def everything(daemon: Daemon) -> tuple[list[Path], list[Path]]:
    """Every directory and every file below the home."""
    found = [daemon.home, *daemon.home.rglob("*")]
    return [path for path in found if path.is_dir()], [path for path in found if path.is_file()]


def denied(paths: list[Path], use: Callable[[Path], object]) -> list[Path]:
    """Those that another user was kept from."""
    kept_out = []
    for path in paths:
        try:
            use(path)
        except PermissionError:
            kept_out.append(path)
    return kept_out


def lines(daemon: Daemon) -> list[bytes]:
    """A request of every verb, and one of each kind that is none."""
    place: dict[str, Any] = {"cwd": str(daemon.repo), "name": "note", "query": "words", "prompt": "words"}
    asked = []
    for verb in VERBS.values():
        known = set(verb.params.__struct_encode_fields__)
        asked.append(request(verb.name, **{name: value for name, value in place.items() if name in known}))
    return [*asked, b"", b"{}", b"x" * 2_000_000]


def heard(path: Path, line: bytes) -> bytes:
    """All that comes back on a connection that sends `line`."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(str(path))
        try:
            sock.sendall(line + b"\n")
            return sock.recv(1)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def test_modes_keep_another_user_from_connecting_listing_and_reading(filled: Daemon) -> None:
    directories, files = everything(filled)
    kinds = {path.name.rpartition(".")[2] for path in files}
    assert kinds >= {"md", "json", "jsonl", "lock"}
    assert any(path.parent.name == "objects" for path in files)
    assert as_another(lambda: denied(directories, os.listdir)) == directories
    assert as_another(lambda: denied(files, Path.read_bytes)) == files
    assert as_another(lambda: denied([filled.socket], lambda path: heard(path, b""))) == [filled.socket]


def test_files_stay_closed_when_somebody_opened_the_directories(filled: Daemon) -> None:
    directories, files = everything(filled)
    for directory in directories:
        directory.chmod(0o777)
    assert as_another(lambda: denied(directories, os.listdir)) == []
    assert as_another(lambda: denied(files, Path.read_bytes)) == files
    assert as_another(lambda: denied(files, lambda path: path.open("ab").close())) == files


def test_the_peer_check_alone_drops_another_user_without_a_byte(filled: Daemon) -> None:
    for path in (*everything(filled)[0], filled.socket):
        path.chmod(0o777)
    before = [filled.call("memory.list"), filled.call("memory.log"), filled.call("memory.stats")]
    asked = lines(filled)
    assert len(asked) > len(VERBS)
    replies = as_another(lambda: [heard(filled.socket, line) for line in asked])
    assert replies == [b""] * len(asked)
    assert [filled.call("memory.list"), filled.call("memory.log"), filled.call("memory.stats")] == before
    assert filled.process is not None
    assert filled.process.poll() is None
    assert heard(filled.socket, request("daemon.hello")) == b"{"


def test_a_client_of_another_user_is_told_that_it_cannot(filled: Daemon) -> None:
    def refusal() -> str:
        try:
            with memd_client.connect(filled.env, autostart=False) as memd:
                return str(memd.call("memory.list", {"cwd": str(filled.repo)}))
        except memd_client.Unavailable as error:
            return error.message

    assert "Permission denied" in as_another(refusal)
    for path in (*everything(filled)[0], filled.socket):
        path.chmod(0o777)
    said = as_another(refusal)
    # It is dropped as it comes: whether that is seen before its request is sent or after is the moment's.
    assert any(words in said for words in ("the connection to", "takes no requests any more")), said
    assert MARK not in said


@contextmanager
def served_by_nobody() -> Iterator[tuple[str, FakeDaemon]]:
    """A socket in a directory of everybody's, at which a process of another user listens."""
    place = Path(tempfile.mkdtemp(prefix="memd-", dir="/tmp"))
    place.chmod(0o777)
    path = str(place / "memd.sock")
    os.seteuid(NOBODY)
    try:
        fake = FakeDaemon(path)
    finally:
        os.seteuid(0)
    try:
        with fake:
            yield path, fake
    finally:
        shutil.rmtree(place)


def test_a_socket_of_another_user_is_told_nothing(filled: Daemon) -> None:
    """Root's clients included: only what listens as root or as the user themselves is memd."""
    memctl = [sys.executable, "-m", "memd.memctl", "save", "--type", "user", "--description", MARK, "/dev/null"]
    with served_by_nobody() as (path, fake):
        Path(path).chmod(0o777)
        env = filled.env | {"MEMD_SOCKET": path}
        with pytest.raises(memd_client.OtherOwner) as caught:
            memd_client.connect(env)
        assert str(NOBODY) in caught.value.message
        done = subprocess.run(
            memctl, env=env, cwd=filled.repo, capture_output=True, text=True, timeout=20, check=False
        )
        assert done.returncode == 5
        assert "another user" in done.stderr
        assert done.stdout == ""
        assert fake.requests == []


@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o700), (NOBODY, 0o777), (0, 0o777), (0, 0o750)])
def test_a_runtime_directory_that_is_not_ours_alone_is_used_by_neither_side(owner: int, mode: int) -> None:
    with tempfile.TemporaryDirectory(prefix="memd-", dir="/tmp") as name:
        root = Path(name)
        runtime = root / "runtime"
        runtime.mkdir()
        os.chown(runtime, owner, owner)
        runtime.chmod(mode)
        daemon = Daemon(root)
        del daemon.env["MEMD_HOME"]
        daemon.env |= {"XDG_RUNTIME_DIR": str(runtime), "XDG_DATA_HOME": str(root / "data")}
        path = daemon.socket
        assert runtime not in path.parents
        try:
            daemon.start()  # it is reached where the client looks
            assert stat.S_ISSOCK(path.stat().st_mode)
            assert list(runtime.iterdir()) == []
        finally:
            daemon.close()


def test_what_is_asked_is_json() -> None:
    """The requests above are what a client of our own would be answered."""
    with running_daemon() as daemon:
        for line in lines(daemon)[:5]:
            assert json.loads(line)["jsonrpc"] == "2.0"
