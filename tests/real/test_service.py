"""A real `systemd --user`: memd as its service, installed as a stranger installs it. SPEC section 15, as root."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.user_manager import HOME, RUNTIME, UserManager, user_manager
from support.waiting import until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)

INTERPRETERS = (getattr(sys, "_base_executable", sys.executable), "/usr/bin/python3")
UNITS = f"{HOME}/.config/systemd/user"
SOCKET = f"{RUNTIME}/memd/memd.sock"


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """The programs of an environment that any user may run, its path with a space and more, as pipx may have it."""
    place = Path(tempfile.mkdtemp(prefix="memd-pipx-", dir="/tmp"))
    place.chmod(0o755)
    home = place / "pipx's home 100%" / "venvs" / "memd"
    # `env` runs it as that user does: what setpriv itself runs is still found with root's eyes.
    user = ["setpriv", "--reuid", "64123", "--regid", "64123", "--clear-groups", "env"]
    probe = ["-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"]
    may_run = (
        each
        for each in INTERPRETERS
        if subprocess.run([*user, each, *probe], check=False, cwd="/", capture_output=True).returncode == 0
    )
    python = next(may_run, None)
    assert python is not None, f"no user may run any of {INTERPRETERS}: install python3 and python3-venv"
    for command in (
        [python, "-m", "venv", str(home)],
        [str(home / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)],
    ):
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=280, umask=0o022)
    yield home / "bin"
    shutil.rmtree(place)


class Service:
    """memd in a user's session, as a person sees it from the shell."""

    def __init__(self, manager: UserManager, programs: Path) -> None:
        self.manager = manager
        self.programs = programs
        self.memctl_path = str(programs / "memctl")
        manager.run("mkdir", "-p", f"{HOME}/repo/.git")

    def memctl(self, *words: str, env: dict[str, str] | None = None) -> str:
        """What memctl prints, the data; the test fails when it does."""
        return self.manager.run(self.memctl_path, "-C", f"{HOME}/repo", *words, env=env)

    def ask(self, *words: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """A memctl that may fail."""
        return self.manager.ask(self.memctl_path, "-C", f"{HOME}/repo", *words, env=env)

    def script(self, text: str, *words: str) -> list[str]:
        """The command line of a Python that has memd, run in the repository."""
        return self.manager.command(
            "sh", "-c", 'cd repo && exec "$@"', "sh", str(self.programs / "python"), "-c", text, *words
        )

    def save(self, name: str) -> None:
        """Save a note."""
        self.memctl("save", "--name", name, "--type", "user", "--description", f"About {name}", "/dev/null")

    def names(self) -> list[str]:
        """The names of every note."""
        return [row.split("\t")[0] for row in self.memctl("list").splitlines()]

    @property
    def pid(self) -> int:
        """The process systemd runs, 0 for none; as it is numbered in there."""
        return int(self.manager.shown("memd.service", "MainPID"))

    def signal(self, name: str) -> None:
        """Send the daemon a signal, as no manager does."""
        self.manager.systemctl("kill", f"--signal={name}", "--kill-whom=main", "memd.service")

    def is_up(self, besides: int = 0) -> bool:
        """Whether the service is ready, in another process than `besides`."""
        return self.manager.shown("memd.service", "ActiveState") == "active" and self.pid not in (0, besides)

    def daemons(self) -> list[str]:
        """Every process in there that is memd's."""
        return self.manager.ask("pgrep", "-f", "--", "-m memd$").stdout.split()

    def drop_in(self, text: str) -> None:
        """Change the service as a person may."""
        place = f"{UNITS}/memd.service.d"
        self.manager.run("sh", "-c", f"mkdir -p {place} && cat >{place}/test.conf", typed=text)
        self.manager.systemctl("daemon-reload")


@pytest.fixture
def service(programs: Path) -> Iterator[Service]:
    """A user who has just installed memd."""
    with user_manager() as manager:
        yield Service(manager, programs)


@pytest.fixture
def installed(service: Service) -> Service:
    """A user who has memd as a service."""
    service.memctl("service", "install")
    return service


# -- in and out ----------------------------------------------------------------------------------------------------


def test_an_install_ends_with_a_running_enabled_service_and_says_what_it_did(service: Service) -> None:
    done = service.ask("service", "install")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("memd 0.1.0 runs as a service · pid ")
    for said in (f"wrote {UNITS}/memd.socket", f"wrote {UNITS}/memd.service", "enabled"):
        assert said in done.stderr
    for unit in ("memd.socket", "memd.service"):
        assert service.manager.shown(unit, "ActiveState") == "active"
        assert service.manager.systemctl("is-enabled", unit) == "enabled\n"
    assert service.manager.shown("memd.service", "StatusText") == "0 stores, 0 connections"
    assert service.manager.run("stat", "-c", "%a", SOCKET, f"{RUNTIME}/memd").split() == ["600", "700"]
    assert service.ask("service", "status").returncode == 0
    service.save("note")
    assert service.names() == ["note"]
    assert service.manager.run("stat", "-c", "%a", f"{HOME}/.local/share/memd").split() == ["700"]


def test_the_units_are_clean(installed: Service) -> None:
    done = installed.manager.ask(
        "systemd-analyze", "--user", "verify", f"{UNITS}/memd.socket", f"{UNITS}/memd.service"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_install_and_uninstall_may_be_repeated_and_leave_nothing(installed: Service) -> None:
    pid = installed.pid
    again = installed.ask("service", "install")
    assert (again.returncode, installed.pid) == (0, pid)
    assert "wrote" not in again.stderr
    installed.save("note")
    assert installed.memctl("service", "uninstall") == "memd is no service any more\n"
    assert installed.memctl("service", "uninstall") == "memd is not installed as a service\n"
    assert installed.manager.run("find", UNITS, "-name", "*memd*") == ""
    assert installed.manager.ask("test", "-e", f"{RUNTIME}/memd").returncode == 1
    assert installed.daemons() == []
    assert installed.manager.shown("memd.service", "LoadState") == "not-found"
    assert installed.ask("service", "status").returncode == 1
    assert installed.names() == ["note"]  # a client starts it, as before
    installed.memctl("service", "install")
    assert installed.names() == ["note"]


def test_one_that_a_client_started_hands_over_at_the_install(service: Service) -> None:
    service.save("note")
    (pid,) = service.daemons()
    done = service.ask("service", "install")
    assert done.returncode == 0, done.stderr
    assert f"has handed over · pid {pid}" in done.stderr
    until(lambda: service.daemons() == [str(service.pid)])  # the old one has let go, and then ends
    assert service.names() == ["note"]


def test_the_places_of_whoever_installs_are_the_service_s(service: Service) -> None:
    env = {"MEMD_HOME": f'{HOME}/my "notes" 100% $HOME', "MEMD_CONFIG": f"{HOME}/c%h.toml"}
    service.manager.run("sh", "-c", f"echo 'save_cop = 1' >'{HOME}/c%h.toml'")
    service.memctl("service", "install", env=env)
    status = json.loads(service.memctl("status", "--json", env=env))
    assert status["pid"] == service.pid
    assert [one["kind"] for one in status["findings"]] == ["config"]
    service.memctl("save", "--type", "user", "--description", "A fact", "/dev/null", env=env)
    assert service.manager.run("test", "-S", f"{env['MEMD_HOME']}/run/memd.sock") == ""
    assert service.memctl("service", "uninstall", env=env) == "memd is no service any more\n"
    assert service.manager.ask("test", "-e", f"{env['MEMD_HOME']}/run/memd.sock").returncode == 1


def test_a_system_without_namespaces_has_the_service_without_its_wall(service: Service) -> None:
    service.manager.run("rmdir", "/run/systemd/unit-root", as_root=True)  # what a sandbox is built on
    done = service.ask("service", "install")
    assert done.returncode == 0, done.stderr
    assert "without that wall" in done.stderr
    service.save("note")
    assert service.is_up()
    assert service.ask("service", "install").returncode == 0


def test_a_unit_that_somebody_else_wrote_is_left_alone(service: Service) -> None:
    service.manager.run("sh", "-c", f"mkdir -p {UNITS} && echo '[Unit]' >{UNITS}/memd.service")
    for word in ("install", "uninstall"):
        done = service.ask("service", word)
        assert done.returncode == 1
        assert "was not written by memctl" in done.stderr
    assert service.manager.run("cat", f"{UNITS}/memd.service") == "[Unit]\n"


# -- its life ------------------------------------------------------------------------------------------------------


def test_a_stop_leaves_the_socket_and_the_next_call_starts_it(installed: Service) -> None:
    pid = installed.pid
    installed.manager.systemctl("stop", "memd.service")
    assert installed.daemons() == []
    assert installed.manager.run("test", "-S", SOCKET) == ""
    assert installed.ask("status").returncode == 5
    assert installed.daemons() == [], "asking how it is has started it"
    installed.save("note")
    assert installed.is_up(besides=pid)
    said = installed.ask("stop")
    assert "systemd listens on" in said.stderr
    assert installed.daemons() == []
    assert installed.memctl("restart").startswith("memd 0.1.0 started")
    pid = installed.pid
    assert installed.memctl("restart").startswith("memd 0.1.0 restarted")
    assert installed.is_up(besides=pid)
    assert installed.names() == ["note"]


def test_a_kill_starts_it_again(installed: Service) -> None:
    installed.save("note")
    pid = installed.pid
    installed.signal("SIGKILL")
    until(lambda: installed.is_up(besides=pid))
    assert installed.manager.shown("memd.service", "NRestarts") == "1"
    assert installed.names() == ["note"]


def test_a_hang_is_caught_by_the_watchdog_and_who_waits_is_served(installed: Service) -> None:
    installed.save("note")
    installed.drop_in("[Service]\nWatchdogSec=1\nTimeoutAbortSec=1\n")
    installed.manager.systemctl("restart", "memd.service")
    pid = installed.pid
    installed.signal("SIGSTOP")
    assert installed.names() == ["note"]
    until(lambda: installed.is_up(besides=pid))
    assert installed.manager.shown("memd.service", "NRestarts") == "1"
    assert installed.daemons() == [str(installed.pid)]


SAVING = """
import sys, memory
for number in range(int(sys.argv[2])):
    name = f"note-{sys.argv[1]}-{number}"
    memory.sync.save("words", name=name, type="user", description=f"About {name}")
    print(number, flush=True)
"""


def test_clients_during_a_restart_are_served(installed: Service) -> None:
    env = {**os.environ}
    writers = [
        subprocess.Popen(
            installed.script(f"import os; os.environ['MEMD_SESSION'] = ''\n{SAVING}", str(writer), "3"),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for writer in range(6)
    ]
    for _ in range(3):
        installed.manager.systemctl("restart", "memd.service")
    for writer in writers:
        out, err = writer.communicate(timeout=60)
        assert (writer.returncode, out) == (0, "0\n1\n2\n"), err
    assert len(installed.names()) == 18
    assert installed.memctl("verify") == ""


def test_a_reload_reads_the_config_again(installed: Service) -> None:
    installed.manager.run("sh", "-c", "mkdir -p .config/memd && echo 'save_cap = ' >.config/memd/config.toml")
    pid = installed.pid
    installed.manager.systemctl("reload", "memd.service")
    until(lambda: "config" in installed.manager.shown("memd.service", "StatusText"))
    assert "does not parse" in installed.memctl("status")
    installed.manager.run("sh", "-c", "echo 'save_cap = 5' >.config/memd/config.toml")
    installed.manager.systemctl("reload", "memd.service")
    until(lambda: "config" not in installed.manager.shown("memd.service", "StatusText"))
    assert installed.pid == pid


def test_a_socket_s_file_that_was_removed_is_made_again_by_the_next_call(installed: Service) -> None:
    installed.save("note")
    installed.manager.run("rm", SOCKET)
    assert installed.names() == ["note"]
    assert installed.daemons() == [str(installed.pid)]


# -- its walls -----------------------------------------------------------------------------------------------------

PROBE = """
import json, os, socket, sys
home, results = sys.argv[1], {}
def attempt(name, what):
    try:
        what()
        results[name] = True
    except OSError:
        results[name] = False
def write(path):
    with open(path, "w") as file:
        file.write("x")
os.makedirs(f"{home}/.local/share/memd", exist_ok=True)
for path in (f"{home}/x", f"{home}/repo/x", f"{home}/.claude/x", "/tmp/memd-probe", "/var/tmp/memd-probe",
             os.environ["XDG_RUNTIME_DIR"] + "/x", "/dev/shm/memd-probe"):
    attempt(path, lambda: write(path))
for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET"):
    attempt(family, lambda: socket.socket(getattr(socket, family), socket.SOCK_DGRAM).close())
attempt("unix", lambda: socket.socket(socket.AF_UNIX).close())
attempt("read", lambda: open(f"{home}/.claude/note").read())
attempt("list", lambda: os.listdir("/tmp"))
attempt("own", lambda: write(f"{home}/.local/share/memd/x"))
with open(f"{home}/.local/share/memd/{sys.argv[2]}", "w") as file:
    json.dump(results, file)
"""
FORBIDDEN = (
    f"{HOME}/x",
    f"{HOME}/repo/x",
    f"{HOME}/.claude/x",
    "/tmp/memd-probe",
    "/var/tmp/memd-probe",
    f"{RUNTIME}/x",
    "AF_INET",
    "AF_INET6",
    "AF_NETLINK",
)
ALLOWED = ("unix", "read", "list", "own")
FAMILIES = FORBIDDEN[6:]
OUTSIDE = FORBIDDEN[:6]
# Without these lines this is not forbidden any more. ProtectHome guards what ProtectSystem=strict does, too.
WALLS = {
    ("PrivateUsers",): OUTSIDE,
    ("ProtectSystem", "ProtectHome"): OUTSIDE,
    ("RestrictAddressFamilies",): FAMILIES,
}


def probed(installed: Service, result: str, *, without: tuple[str, ...] = ()) -> dict[str, bool]:
    """What a service with the daemon's walls may do, but for the lines that begin so."""
    manager = installed.manager
    unit = manager.run("cat", f"{UNITS}/memd.service").replace("Type=notify", "Type=oneshot")
    leaves = ("Requires", "After", "Restart=", "Watchdog", *(f"{name}=" for name in without))
    lines = [line for line in unit.splitlines() if not line.startswith(leaves)]
    text = "\n".join(f"{line} {HOME} {result}" if line.startswith("ExecStart=") else line for line in lines)
    text = text.replace("-m memd", f"{HOME}/.local/share/memd/probe.py")
    manager.run("sh", "-c", f"cat >{UNITS}/probe.service", typed=f"{text}\n")
    manager.systemctl("daemon-reload")
    manager.systemctl("start", "probe.service")
    found: dict[str, bool] = json.loads(manager.run("cat", f".local/share/memd/{result}"))
    return found


def test_what_the_walls_forbid_fails_in_there_and_works_outside(installed: Service) -> None:
    manager = installed.manager
    manager.run(
        "sh", "-c", "mkdir .claude && echo words >.claude/note && cat >.local/share/memd/probe.py", typed=PROBE
    )
    python = str(installed.programs / "python")
    probe = f"{HOME}/.local/share/memd/probe.py"
    manager.run(python, probe, HOME, "outside")
    outside = json.loads(manager.run("cat", ".local/share/memd/outside"))
    assert {name: outside[name] for name in (*FORBIDDEN, *ALLOWED)} == dict.fromkeys((*FORBIDDEN, *ALLOWED), True)
    for path in (*FORBIDDEN[:6], "/dev/shm/memd-probe"):
        manager.run("rm", "-f", path)
    inside = probed(installed, "inside")
    assert {name: inside[name] for name in FORBIDDEN} == dict.fromkeys(FORBIDDEN, False)
    assert {name: inside[name] for name in ALLOWED} == dict.fromkeys(ALLOWED, True)
    for number, (without, opened) in enumerate(WALLS.items()):
        found = probed(installed, f"without-{number}", without=without)
        assert tuple(name for name in FORBIDDEN if found[name]) == opened, without


def test_within_its_walls_it_imports_what_a_person_names(installed: Service) -> None:
    installed.manager.run("sh", "-c", "mkdir mine && printf '# A fact\\n' >mine/a-fact.md")
    installed.memctl("import", f"{HOME}/mine", "--yes")
    assert installed.names() == ["a-fact"]
    installed.memctl("forget", "a-fact", "--yes")
    assert installed.memctl("verify") == ""


def test_notes_behind_a_link_may_be_written(service: Service) -> None:
    service.manager.run(
        "sh", "-c", "mkdir -p .local/share/memd dotfiles && ln -s $HOME/dotfiles .local/share/memd/memory"
    )
    service.memctl("service", "install")
    service.memctl("--scope", "global", "save", "--type", "user", "--description", "A fact", "/dev/null")
    assert service.manager.run("ls", "dotfiles").split().count("a-fact.md") == 1
