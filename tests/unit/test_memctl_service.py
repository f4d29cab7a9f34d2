"""memctl where systemd is a fake, or none: what it asks, what it says (SPEC 14 and 15)."""

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memd_client
from support.client_home import client_home
from support.fake_daemon import FakeDaemon
from support.memctl_program import answers, memctl

HELLO = {"version": "0.1.0", "protocol_min": 1, "protocol_max": 1, "capabilities": [], "pid": 2**22 + 1}

# Of one manager: what it was asked is in the file `asked`; whether the service is up, in the file `up`.
SYSTEMCTL = """#!/bin/sh
cd {place}
shift
echo "$*" >>asked
case "$*" in
    "is-active memd.socket memd.service") echo active; cat up ;;
    show-environment) test ! -e deaf || {{ echo "Failed to connect to bus" >&2; exit 1; }} ;;
    "show --value --property=FragmentPath "*) echo {units}/$4 ;;
    "show --value --property=UnitFileState "*) echo enabled ;;
    "show --value --property=ActiveState "*) echo active ;;
    "show --value --property=ExecMainStatus "*) cat status ;;
    "start "*|"restart "*) test ! -e fails || {{ rm fails; exit 1; }}; echo active >up ;;
    *) ;;
esac
"""


class Place:
    """A user's home with a fake systemd."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.directory = Path(env["HOME"]).parent
        self.units = Path(env["HOME"], ".config/systemd/user")
        bin_ = self.directory / "bin"
        bin_.mkdir()
        program = bin_ / "systemctl"
        program.write_text(SYSTEMCTL.format(place=self.directory, units=self.units))
        program.chmod(0o700)
        for name in ("cat", "rm", "sh", "tail"):
            (bin_ / name).symlink_to(shutil.which(name) or name)
        env["PATH"] = str(bin_)
        self.say("up", "inactive\n")

    def say(self, name: str, text: str = "") -> None:
        """Change how systemd is."""
        (self.directory / name).write_text(text)

    @property
    def asked(self) -> list[str]:
        """What systemd was told to do, not what it was asked."""
        path = self.directory / "asked"
        words = path.read_text().splitlines() if path.exists() else []
        return [line for line in words if not line.startswith(("show", "is-active"))]

    def text(self, name: str) -> str:
        """A unit's text."""
        return (self.units / name).read_text()


@pytest.fixture
def place() -> Iterator[Place]:
    with client_home() as env:
        Path(env["HOME"]).mkdir()
        yield Place(env)


@pytest.fixture
def served(place: Place) -> Iterator[Place]:
    """A place where a daemon answers."""
    hello = {"daemon.hello": {**HELLO, "home": memd_client.home_id(place.env)}}
    with FakeDaemon(memd_client.socket_path(place.env), answers(place.env, hello)):
        yield place


def test_an_install_writes_enables_and_starts(served: Place) -> None:
    ran = memctl(served.env, "service", "install")
    assert (ran.code, ran.out) == (0, f"memd 0.1.0 runs as a service · pid {HELLO['pid']}\n")
    assert served.asked == [
        "daemon-reload",
        "enable memd.socket memd.service",
        "reset-failed memd.socket memd.service",
        "restart memd.socket memd.service",
    ]
    assert f"ListenStream={memd_client.socket_path(served.env)}\n" in served.text("memd.socket")
    assert f"Environment=MEMD_HOME={served.env['MEMD_HOME']}\n" in served.text("memd.service")
    assert f"ReadWritePaths={served.env['MEMD_HOME']}\n" in served.text("memd.service")
    assert ran.err.splitlines()[:2] == [f"wrote {served.units}/memd.socket", f"wrote {served.units}/memd.service"]
    again = memctl(served.env, "service", "install", "--json")
    assert json.loads(again.out)["installed"] is True
    assert served.asked[-1] == "start memd.socket memd.service"
    assert "wrote" not in again.err


def test_a_service_without_its_walls_is_the_last_resort(served: Place) -> None:
    served.say("fails")
    served.say("status", "226\n")
    ran = memctl(served.env, "service", "install")
    assert ran.code == 0
    assert "warning: this system allows a user's service no file system of its own" in ran.err
    assert "PrivateUsers=" not in served.text("memd.service")


def test_a_service_that_does_not_start_for_another_reason_keeps_its_walls(served: Place) -> None:
    served.say("fails")
    served.say("status", "1\n")
    ran = memctl(served.env, "service", "install")
    assert (ran.code, ran.out) == (1, "")
    assert "memd.service does not start; `memctl logs` should say why" in ran.err
    assert "PrivateUsers=yes" in served.text("memd.service")


@pytest.mark.parametrize("how", ["no systemctl", "deaf"])
def test_without_systemd_it_says_what_to_do_instead(place: Place, how: str) -> None:
    if how == "deaf":
        place.say("deaf")
    else:
        place.env["PATH"] = str(place.directory)
        if os.path.lexists("/usr/bin/systemctl"):  # it is looked for there, too: then it has no manager to talk to
            place.env["XDG_RUNTIME_DIR"] = str(place.directory / "nowhere")
            place.env["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nonexistent"
    ran = memctl(place.env, "service", "install")
    assert (ran.code, ran.out) == (1, "")
    for said in ("there is no systemd that runs services for this user", "macOS", "enable-linger", "`memd`"):
        assert said in ran.err
    assert not place.units.exists()


def test_an_uninstall_takes_it_all_away_and_may_be_repeated(served: Place) -> None:
    memctl(served.env, "service", "install")
    ran = memctl(served.env, "service", "uninstall")
    assert (ran.code, ran.out) == (0, "memd is no service any more\n")
    assert "disable --now memd.socket memd.service" in served.asked
    assert list(served.units.iterdir()) == []
    again = memctl(served.env, "service", "uninstall")
    assert (again.code, again.out) == (0, "memd is not installed as a service\n")
    assert Path(memd_client.socket_path(served.env)).exists(), "somebody still answers there"


@pytest.mark.parametrize("how", ["deaf", "deleted", "deleted and deaf"])
def test_an_uninstall_takes_the_links_away_that_systemd_leaves(served: Place, how: str) -> None:
    memctl(served.env, "service", "install")
    for target, unit in (("default.target", "memd.service"), ("sockets.target", "memd.socket")):
        wants = served.units / f"{target}.wants"
        wants.mkdir()
        (wants / unit).symlink_to(served.units / unit)
        (wants / "another.service").symlink_to("elsewhere")
        if "deleted" in how:
            (served.units / unit).unlink()
    if "deaf" in how:
        served.say("deaf")
    ran = memctl(served.env, "service", "uninstall")
    assert (ran.code, ran.out) == (0, "memd is no service any more\n")
    assert sorted(path.name for path in served.units.rglob("*")) == [
        "another.service",
        "another.service",
        "default.target.wants",
        "sockets.target.wants",
    ]
    assert ("stop memd.socket memd.service" in served.asked) == (how == "deleted")


def test_an_uninstall_removes_a_dead_socket_s_file(place: Place) -> None:
    path = Path(memd_client.socket_path(place.env))
    hello = {"daemon.hello": {**HELLO, "home": memd_client.home_id(place.env)}}
    with FakeDaemon(str(path), answers(place.env, hello)):
        memctl(place.env, "service", "install")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    ran = memctl(place.env, "service", "uninstall")
    assert f"removed {path}\n" in ran.err
    assert not path.parent.exists()


def test_somebody_else_s_units_are_left_alone(place: Place) -> None:
    place.units.mkdir(parents=True)
    (place.units / "memd.service").write_text("[Service]\n")
    for word in ("install", "uninstall"):
        ran = memctl(place.env, "service", word)
        assert ran.code == 1
        assert "memd.service was not written by memctl; move it away first" in ran.err
    assert place.text("memd.service") == "[Service]\n"


def test_how_it_stands(served: Place) -> None:
    before = memctl(served.env, "service", "status")
    assert (before.code, before.out) == (1, "installed\tno\n")
    memctl(served.env, "service", "install")
    ran = memctl(served.env, "service", "status", "--json")
    state: dict[str, Any] = json.loads(ran.out)
    assert ran.code == 0
    assert (state["installed"], state["enabled"], state["socket"], state["serves_this"]) == (
        True,
        True,
        "active",
        True,
    )
    elsewhere = memctl({**served.env, "MEMD_SOCKET": "/elsewhere.sock"}, "service", "status")
    assert elsewhere.code == 1
    assert "it listens elsewhere than your clients look" in elsewhere.out


def test_a_wrong_word_is_usage(place: Place) -> None:
    assert memctl(place.env, "service").code == 2
    ran = memctl(place.env, "service", "begin")
    assert ran.code == 2
    assert "install, uninstall or status" in ran.err


def test_where_systemd_listens_alone_nobody_is_started_for_a_question(served: Place) -> None:
    memctl(served.env, "service", "install")
    served.say("up", "inactive\n")
    asked_for = memctl(served.env, "status")
    assert asked_for.code == 5
    assert "systemd listens in its place" in asked_for.err
    assert memctl(served.env, "version").err == "memd does not run\n"
    assert memctl(served.env, "stop").err == "memd does not run\n"
    served.say("up", "active\n")
    assert f"pid {HELLO['pid']}" in memctl(served.env, "version").out


# -- logs ----------------------------------------------------------------------------------------------------------


def test_the_log_of_one_that_a_client_started(place: Place) -> None:
    home = Path(place.env["MEMD_HOME"])
    ran = memctl(place.env, "logs")
    assert ran.code == 1
    assert f"there is no {home}/memd.log" in ran.err
    home.mkdir()
    (home / "memd.log").write_text("".join(f"<6>line {n}\n" for n in range(100)))
    ran = memctl(place.env, "logs")
    assert ran.out.splitlines() == [f"<6>line {n}" for n in range(50, 100)]
    assert ran.err == f"{home}/memd.log:\n"
    assert memctl(place.env, "logs", "-n", "2").out == "<6>line 98\n<6>line 99\n"


def test_the_journal_of_a_service(served: Place) -> None:
    memctl(served.env, "service", "install")
    program = served.directory / "bin" / "journalctl"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o700)
    ran = memctl(served.env, "logs", "-n", "7", "-f")
    assert ran.out == "--user --unit=memd.service --no-pager --output=short-iso --lines=7 --follow\n"
    assert ran.err == "the journal of memd.service:\n"
    program.write_text("#!/bin/sh\necho words\nexec >&-\nexit 1\n")
    assert memctl(served.env, "logs").code == 1
