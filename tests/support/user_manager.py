"""A real `systemd --user` where none was booted. Law: it lives in namespaces of its own and ends with the test.

As root, on Linux with cgroup2. Its user exists in there only: an entry in a passwd file that is mounted over the real
one. Whoever is run in there has the user's id, environment and an empty home.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.waiting import until

USER = "memd-tester"
UID = 64123
HOME = f"/home/{USER}"
RUNTIME = f"/run/user/{UID}"
SECONDS = 60

# What stands in $1 is the directory of passwd and group, $2 the name of the cgroup.
INSIDE = f"""
set -e
mount -t proc proc /proc
mount --bind "$1/passwd" /etc/passwd
mount --bind "$1/group" /etc/group
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /home
# unit-root: where sandboxes are built; at boot the system manager has made it before any user logs in.
mkdir -p /run/systemd/system /run/systemd/unit-root {RUNTIME} {HOME}
chown {UID}:{UID} {RUNTIME} {HOME}
chmod 700 {RUNTIME} {HOME}
umount -R -l /sys/fs/cgroup 2>/dev/null || :
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p "/sys/fs/cgroup/$2/inside"
chown -R {UID}:{UID} "/sys/fs/cgroup/$2"
echo 0 >"/sys/fs/cgroup/$2/inside/cgroup.procs"
cd /
shift 2
exec "$@"
"""
SWEEP = """
mount -t tmpfs none /mnt && mkdir /mnt/c && mount -t cgroup2 none /mnt/c || exit 0
test ! -d "/mnt/c/$1" || find "/mnt/c/$1" -depth -type d -exec rmdir {} +
"""


class UserManager:
    """The manager of one user, its namespaces, and the way in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Path(HOME)
        self.runtime = Path(RUNTIME)
        self.group = f"memd-test-{os.getpid()}"
        self.env = {
            "HOME": HOME,
            "USER": USER,
            "LOGNAME": USER,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": RUNTIME,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus",
        }
        self._pid = 0

    @property
    def as_user(self) -> list[str]:
        """The beginning of a command line: become the user, with the user's environment and no more."""
        ids = ["--reuid", str(UID), "--regid", str(UID), "--clear-groups"]
        return ["setpriv", *ids, "env", "-i", *(f"{name}={value}" for name, value in self.env.items())]

    @property
    def log(self) -> str:
        """What the manager itself said."""
        return (self.root / "manager.log").read_text(errors="replace")

    def start(self) -> "subprocess.Popen[bytes]":
        """Make the namespaces and wait until the manager answers in them."""
        for name, line in {"passwd": f"{USER}:x:{UID}:{UID}::{HOME}:/bin/sh", "group": f"{USER}:x:{UID}:"}.items():
            (self.root / name).write_text(f"{Path('/etc', name).read_text().rstrip()}\n{line}\n")
        manager = [*self.as_user, "/lib/systemd/systemd", "--user"]
        spaces = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private"]
        inside = ["sh", "-c", INSIDE, "sh", str(self.root), self.group]
        with (self.root / "manager.log").open("wb") as log:
            # The manager is not the first process in there: that one reaps, and ends with the namespaces.
            init = ["sh", "-c", '"$@" & wait', "sh"]
            process = subprocess.Popen([*spaces, *inside, *init, *manager], stdout=log, stderr=log)
        until(lambda: self._is_up(process), SECONDS)
        return process

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """End everything that runs in there, and take the cgroup away."""
        process.kill()
        process.wait(SECONDS)
        sweep = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SWEEP, "sh", self.group]
        until(lambda: subprocess.run(sweep, check=False, capture_output=True).returncode == 0)

    def command(self, *words: str, env: Mapping[str, str] | None = None, as_root: bool = False) -> list[str]:
        """The command line that runs a program in there, as the user and in the home."""
        place = ["nsenter", f"--target={self._pid}", "--mount", "--pid", "--ipc"]
        more = [
            "env",
            "--chdir",
            "/" if as_root else HOME,
            *(f"{name}={value}" for name, value in (env or {}).items()),
        ]
        return [*place, *([] if as_root else self.as_user), *more, *words]

    def ask(
        self, *words: str, env: Mapping[str, str] | None = None, as_root: bool = False, typed: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program in there to its end."""
        return subprocess.run(
            self.command(*words, env=env, as_root=as_root),
            input=typed,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def run(self, *words: str, env: Mapping[str, str] | None = None, as_root: bool = False, typed: str = "") -> str:
        """A program's output; the test fails when it does."""
        done = self.ask(*words, env=env, as_root=as_root, typed=typed)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}{self.log[-2000:]}"
        return done.stdout

    def systemctl(self, *words: str) -> str:
        """What `systemctl --user` answers."""
        return self.run("systemctl", "--user", *words)

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.systemctl("show", "--value", f"--property={name}", unit).rstrip("\n")

    def inside(self, path: str | Path) -> Path:
        """A path in there, as it is reached from out here."""
        return Path(f"/proc/{self._pid}/root{path}")

    def _is_up(self, process: "subprocess.Popen[bytes]") -> bool:
        assert process.poll() is None, self.log
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if not children:
            return False
        self._pid = int(children[0])
        return self.ask("systemctl", "--user", "list-units").returncode == 0


@contextmanager
def user_manager() -> Iterator[UserManager]:
    """A manager that answers, of a user who has nothing yet."""
    root = Path(tempfile.mkdtemp(prefix="memd-um-", dir="/tmp"))
    root.chmod(0o755)
    manager = UserManager(root)
    process = manager.start()
    try:
        yield manager
    finally:
        manager.end(process)
        shutil.rmtree(root)
