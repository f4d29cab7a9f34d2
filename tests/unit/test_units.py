"""Unit files: what systemd reads back is what was meant (SPEC 15)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from memd.memctl import units
from memd_client import systemd

COMMAND = ["/usr/bin/python3", "-P", "-m", "memd"]


def values(text: str, name: str) -> list[str]:
    """Every value a unit gives a setting."""
    return [line.partition("=")[2] for line in text.splitlines() if line.partition("=")[0] == name]


def service(command: Sequence[str] = COMMAND, env: dict[str, str] | None = None, *, sandboxed: bool = True) -> str:
    return units.service_unit(command, ["/home/me/.local/share/memd"], env or {}, sandboxed=sandboxed)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/run/user/7/memd/memd.sock", "%t/memd/memd.sock"),
        ("/run/user/77/memd/memd.sock", "/run/user/77/memd/memd.sock"),
        ("/home/me/100% mine/run/memd.sock", "/home/me/100%% mine/run/memd.sock"),
    ],
)
def test_a_socket_s_path(path: str, written: str) -> None:
    text = units.socket_unit(path, "/run/user/7")
    assert values(text, "ListenStream") == [written]
    assert values(text, "SocketMode") == ["0600"]
    assert values(text, "DirectoryMode") == ["0700"]


def test_a_client_finds_the_path_that_was_written(tmp_path: Path) -> None:
    unit = tmp_path / "memd.socket"
    path = "/home/me/100% %t mine/memd.sock"
    unit.write_text(units.socket_unit(path, None))
    assert systemd.listens_at({"HOME": "/home/me"}, str(unit)) == [path]


@pytest.mark.parametrize(
    ("program", "written"),
    [
        ("/usr/bin/python3", ":/usr/bin/python3 -P -m memd"),
        ("/my home/python", ':"/my home/python" -P -m memd'),
        ("/100%/$HOME/python", ':"/100%%/$HOME/python" -P -m memd'),
        ("/it's/python", """:/bin/sh -c "exec \\"$0\\" \\"$@\\"" "/it's/python" -P -m memd"""),
        ('/a"b\\c/python', """:/bin/sh -c "exec \\"$0\\" \\"$@\\"" "/a\\"b\\\\c/python" -P -m memd"""),
    ],
)
def test_a_program_is_quoted_as_systemd_reads_it(program: str, written: str) -> None:
    assert values(service([program, *COMMAND[1:]]), "ExecStart") == [written]


def test_only_variables_that_say_something_are_passed() -> None:
    env = {
        "MEMD_HOME": "/home/me/50% off",
        "MEMD_SOCKET": "",
        "XDG_DATA_HOME": "relative",
        "XDG_CONFIG_HOME": "/c",
        "MEMD_SESSION": "s",
        "PATH": "/bin",
    }
    assert values(service(env=env), "Environment") == ['"MEMD_HOME=/home/me/50%% off"', "XDG_CONFIG_HOME=/c"]


def test_the_walls_go_together() -> None:
    for name in units.SANDBOX:
        assert len(values(service(), name)) == 1
        assert values(service(sandboxed=False), name) == []
    assert values(service(), "ReadWritePaths") == ["/home/me/.local/share/memd"]
    assert values(service(sandboxed=False), "RestrictAddressFamilies") == ["AF_UNIX"]


def test_what_was_written_is_known_again() -> None:
    assert units.is_ours(service())
    assert units.is_ours(units.socket_unit("/s", None))
    assert not units.is_ours("[Unit]\n")
