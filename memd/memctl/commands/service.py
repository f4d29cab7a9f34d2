"""Have systemd run the daemon, from the login on and again after a crash; or not any more; or say how it stands."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from contextlib import suppress

import memd_client
from memd.memctl import units
from memd.memctl.ctl import Ctl
from memd.memctl.exits import FINDING, OK, STORAGE, Stop, Usage
from memd.memctl.running import running
from memd.memctl.terminal import BOLD, YELLOW, Cell
from memd_client import starting, systemd
from memd_client.errors import Unavailable
from memd_client.where import runtime_directory

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from subprocess import CompletedProcess

USAGE = "install|uninstall|status"
WORDS = (1, 1)

UNITS = (systemd.SOCKET, systemd.SERVICE)
WAIT = 30.0
"""Seconds systemd may take to start or stop the daemon."""

NO_NAMESPACES = ("217", "226")
"""The exit statuses (USER, NAMESPACE) of a service whose sandbox the system did not allow."""

NO_SYSTEMD = (
    "there is no systemd that runs services for this user: {why}\n"
    "memd does without: the first command that needs it starts it, and `memd` runs it in the foreground.\n"
    "With systemd, log in as the user itself (not with su or sudo), or `loginctl enable-linger`.\n"
    "On macOS a launchd agent does the same: see `Running it` in the README."
)


def options(parser: ArgumentParser) -> None:
    """The command has no options of its own."""


def run(ctl: Ctl, options: Namespace, words: list[str]) -> int:
    """Run the command; gives its exit code, 1 when the service is not what it should be."""
    actions = {"install": install, "uninstall": uninstall, "status": status}
    if words[0] not in actions:
        raise Usage(f"service {words[0]}: install, uninstall or status")
    return actions[words[0]](ctl)


def install(ctl: Ctl) -> int:
    """Write the units, enable and start them. What is there already is left as it is, so it may be repeated."""
    _needs_systemd()
    path, home = memd_client.socket_path(), memd_client.home()
    try:
        command = starting.find_command(os.environ)
    except Unavailable as error:
        raise Stop(FINDING, error.message) from None
    _refuse_others()
    starting.make_private(home)
    texts = {
        systemd.SOCKET: units.socket_unit(path, runtime_directory()),
        systemd.SERVICE: units.service_unit(command, _writable(home), os.environ),
    }
    is_changed = _write_all(ctl, texts)
    _do("daemon-reload")
    _is_found()
    _do("enable", *UNITS)
    ctl.tell("enabled: it starts with your session, and at the first call")
    before = running()
    if not _starts(is_changed):
        if _shown(systemd.SERVICE, "ExecMainStatus") not in NO_NAMESPACES:
            raise Stop(FINDING, f"{systemd.SERVICE} does not start; `memctl logs` should say why")
        texts[systemd.SERVICE] = units.service_unit(command, (), os.environ, sandboxed=False)
        _write_all(ctl, texts)
        _do("daemon-reload")
        ctl.warn("this system allows a user's service no file system of its own: memd runs without that wall")
        if not _starts(True):
            raise Stop(FINDING, f"{systemd.SERVICE} does not start; `memctl logs` should say why")
    hello = running()
    if hello is None:
        raise Stop(FINDING, f"{systemd.SERVICE} was started and does not answer at {path}; see `memctl logs`")
    if before is not None and before["pid"] != hello["pid"]:
        ctl.tell(f"the memd that ran has handed over · pid {before['pid']}")
    if ctl.is_json:
        ctl.out.json({"installed": True, "units": [_file(name) for name in UNITS], "pid": hello["pid"]})
    else:
        ctl.out.line(f"memd {hello['version']} runs as a service · pid {hello['pid']}")
    return OK


def uninstall(ctl: Ctl) -> int:
    """Stop the service, take the units and the socket's file away. Notes and config stay. It may be repeated."""
    _refuse_others()
    has_systemd = _trouble() is None
    there = [name for name in UNITS if os.path.lexists(_file(name))]
    links = [path for name in UNITS for path in _links(name)]
    paths = systemd.listens_at(os.environ, _file(systemd.SOCKET)) if systemd.SOCKET in there else []
    if there and has_systemd:
        _do("disable", "--now", *there)
        ctl.tell("stopped and disabled")
    elif links and has_systemd:  # somebody deleted the files, and the units run on
        systemd.do(os.environ, "stop", *UNITS)
    for name in there:
        os.unlink(_file(name))  # noqa: PTH108 - as above
        ctl.tell(f"removed {_file(name)}")
    for path in links:  # without its systemd, or once its file was deleted by hand, nobody else takes them away
        if os.path.lexists(path):
            os.unlink(path)  # noqa: PTH108 - as above
            ctl.tell(f"removed {path}")
    if (there or links) and has_systemd:
        _do("daemon-reload")
        systemd.do(os.environ, "reset-failed", *UNITS)
    for path in paths:
        _remove_socket(ctl, path)
    if ctl.is_json:
        ctl.out.json({"installed": False, "removed": [_file(name) for name in there]})
    else:
        ctl.out.line("memd is no service any more" if there or links else "memd is not installed as a service")
    return OK


def status(ctl: Ctl) -> int:
    """How the service stands; exit code 1 when it is not installed, not enabled, or does not run."""
    found = {name: _read(name) is not None for name in UNITS}
    state = {
        "installed": all(found.values()),
        "enabled": all(_shown(name, "UnitFileState") == "enabled" for name in UNITS),
        "socket": _shown(systemd.SOCKET, "ActiveState") or "unknown",
        "service": _shown(systemd.SERVICE, "ActiveState") or "unknown",
        "pid": int(_shown(systemd.SERVICE, "MainPID") or 0) or None,
        "restarts": int(_shown(systemd.SERVICE, "NRestarts") or 0),
        "status": _shown(systemd.SERVICE, "StatusText"),
        "serves_this": systemd.is_installed(os.environ, memd_client.socket_path()),
    }
    is_well = state["installed"] and state["enabled"] and state["socket"] == "active" and state["serves_this"]
    if ctl.is_json:
        ctl.out.json(state)
        return OK if is_well else FINDING
    rows: list[list[Cell]] = [["installed", _word(state["installed"])]]
    if any(found.values()):
        rows += [
            ["enabled", _word(state["enabled"])],
            ["socket", str(state["socket"])],
            ["service", str(state["service"])],
            ["pid", str(state["pid"] or "none")],
            ["restarts", str(state["restarts"])],
            ["says", str(state["status"] or "nothing")],
        ]
        if not state["serves_this"]:
            rows.append(["finding", ("it listens elsewhere than your clients look; install it again", YELLOW)])
    ctl.out.table(rows)
    return OK if is_well else FINDING


def _word(is_so: object) -> Cell:
    return ("yes", BOLD) if is_so else ("no", YELLOW)


# -- systemd -------------------------------------------------------------------------------------------------------


def _trouble() -> str | None:
    """None when this user has a systemd, else what is in the way."""
    ran = systemd.run(os.environ, "show-environment")
    if ran is None:
        return "no systemctl answers"
    return None if ran.returncode == 0 else ran.stderr.strip() or "systemctl says no"


def _needs_systemd() -> None:
    why = _trouble()
    if why is not None:
        raise Stop(FINDING, NO_SYSTEMD.format(why=why))


def _run(*words: str) -> CompletedProcess[str]:
    ran = systemd.run(os.environ, *words, timeout=WAIT)
    if ran is None:
        raise Stop(FINDING, f"systemctl --user {' '.join(words)}: no answer within {WAIT:g} s")
    return ran


def _do(*words: str) -> None:
    ran = _run(*words)
    if ran.returncode != 0:
        raise Stop(FINDING, f"systemctl --user {' '.join(words)}: {ran.stderr.strip()}")


def _starts(is_changed: bool) -> bool:
    """Whether both units are up after this; those that changed are started anew."""
    systemd.do(os.environ, "reset-failed", *UNITS)  # a start that failed before does not count
    return _run("restart" if is_changed else "start", *UNITS).returncode == 0


def _shown(unit: str, name: str) -> str:
    return (systemd.ask(os.environ, "show", "--value", f"--property={name}", unit) or "").strip()


def _is_found() -> None:
    """Make sure that systemd has read what was written: it may look elsewhere than we do."""
    for name in UNITS:
        found = _shown(name, "FragmentPath")
        if not found:
            raise Stop(FINDING, f"systemd does not look where {_file(name)} is; its XDG_CONFIG_HOME differs")
        if os.path.realpath(found) != os.path.realpath(_file(name)):
            raise Stop(FINDING, f"systemd takes {name} from {found}, not from {_file(name)}; remove the former")


# -- files ---------------------------------------------------------------------------------------------------------


def _file(name: str) -> str:
    return os.path.join(systemd.own_directory(os.environ), name)  # noqa: PTH118 - pathlib costs 6 ms


def _links(name: str) -> list[str]:
    """The links by which a unit of ours is enabled, whether or not they lead anywhere still."""
    here = os.path.dirname(_file(name))  # noqa: PTH120 - as above
    places = (f"{here}/{target}.wants/{name}" for target in ("default.target", "sockets.target"))
    return [path for path in places if os.path.islink(path)]  # noqa: PTH114 - as above


def _read(name: str) -> str | None:
    try:
        with open(_file(name), encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as above
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Stop(STORAGE, f"{_file(name)}: {error.strerror}") from None


def _refuse_others() -> None:
    """Leave alone what somebody wrote by hand."""
    for name in UNITS:
        text = _read(name)
        if text is not None and not units.is_ours(text):
            raise Stop(FINDING, f"{_file(name)} was not written by memctl; move it away first")


def _write_all(ctl: Ctl, texts: dict[str, str]) -> bool:
    """Write the units that are not there as they should be; whether there was any."""
    changed = {name: text for name, text in texts.items() if _read(name) != text}
    for name, text in changed.items():
        path = _file(name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - as above
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
                file.write(text)
            os.replace(f"{path}.tmp", path)  # noqa: PTH105 - as above
        except OSError as error:
            raise Stop(STORAGE, f"{path}: {error.strerror}") from None
        ctl.tell(f"wrote {path}")
    return bool(changed)


def _writable(home: str) -> list[str]:
    """Where the daemon writes: its home, and where links in it lead, notes kept in a repository of their own say."""
    places = [home]
    for name in ("memory", "projects", "sessions", "cache"):
        path = f"{home}/{name}"
        if os.path.islink(path) and os.path.isdir(path):  # noqa: PTH112, PTH114 - as above
            places.append(os.path.realpath(path))
    return places


def _remove_socket(ctl: Ctl, path: str) -> None:
    """Take away the file of a socket nobody listens at any more, and its directory if that was all there was."""
    try:
        memd_client.wire.knock(path).close()
    except ConnectionRefusedError:
        os.unlink(path)  # noqa: PTH108 - as above
        ctl.tell(f"removed {path}")
    except FileNotFoundError:
        pass
    except Unavailable:
        return
    else:
        return
    with suppress(OSError):  # it is not there, or holds something else
        os.rmdir(os.path.dirname(path))  # noqa: PTH106, PTH120 - as above
