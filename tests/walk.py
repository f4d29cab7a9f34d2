"""`make run`: memd does its main job on real notes, in a throwaway home. Law: it leaves nothing behind.

Each step is printed as what a person would type and what that printed. A step that does not end as it should stops
the walk, exit 1.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

NOTES = Path(__file__).parent / "data" / "notes"
BIN = Path(sysconfig.get_path("scripts"))

NEW_NOTE = """\
The staging database is rebuilt every night at 02:00 UTC; anything written there by hand is gone by morning.
Put fixtures into `db/seeds/staging.sql` instead.
"""


class WalkError(Exception):
    """A step did not end as it should."""


class Walk:
    """A home, a repository, and the commands run in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.repo = root / "harbour"
        (self.repo / ".git").mkdir(parents=True)
        (root / "user").mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("MEMD_", "XDG_", "CLAUDE"))}
        self.env = kept | {
            "HOME": str(root / "user"),
            "MEMD_HOME": str(self.home),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
        }
        self.store = self.home / "projects" / f"--{str(self.repo)[1:].replace('/', '-')}--" / "memory"

    def say(self, text: str) -> None:
        """One heading, before the commands it is about."""
        sys.stdout.write(f"\n# {text}\n")

    def run(self, typed: str, *, stdin: str = "", exits: int = 0, holds: str = "") -> str:
        """Run one line as a shell would, print it and its output; its output must hold `holds`."""
        done = subprocess.run(
            ["/bin/sh", "-c", typed],
            check=False,
            cwd=self.repo,
            env=self.env | {"STORE": str(self.store)},
            input=stdin,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
        )
        sys.stdout.write(f"$ {typed}\n{done.stdout}")
        sys.stdout.flush()
        if done.returncode != exits or holds not in done.stdout:
            raise WalkError(f"exit {done.returncode} where {exits} was due, or no {holds!r}: {typed}")
        return done.stdout


def walk(it: Walk) -> None:
    """The whole walk."""
    it.say("Start the daemon. Any memctl command would start it too.")
    it.run("memctl start", holds="memd")
    it.say("Notes put into this repository's store by hand. memd sees them by itself; reconcile waits until it has.")
    it.store.mkdir(parents=True, mode=0o700)
    for note in sorted(NOTES.iterdir()):
        shutil.copyfile(note, it.store / note.name)
    it.run('ls "$STORE"', holds="release-steps.md")
    it.run("memctl reconcile", holds="0 forgotten")
    it.run("memctl list", holds="我喜欢-pnpm")
    it.run("memctl log", holds="release-steps")
    it.run("memctl check", exits=1, holds="flaky-upload.md:3")
    it.say("Save a note: its name comes from the description.")
    it.run(
        "memctl save - --type project --description 'Staging is wiped nightly; put fixtures into the seeds file'",
        stdin=NEW_NOTE,
        holds="staging-is-wiped-nightly-put",
    )
    it.say("A secret is refused, and nothing is written.")
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    it.run(f"echo 'token {key}' | memctl save - --type user --description 'the token'", exits=4, holds="ghp_")
    it.say("Search, and read by a name that no note has: the nearest is opened, and it says so.")
    it.run("memctl search where do fixtures for staging go", holds="staging-is-wiped-nightly-put")
    it.run("memctl search 锁文件", holds="我喜欢-pnpm")
    it.run(
        """python -c 'import memory; n = memory.sync.read("scratch on the build host"); """
        """print(n["name"], n["text"], *n["warnings"], sep="\\n")'""",
        holds="no note has that name or hook",
    )
    it.say("Edit a file by hand, in any editor: it is journaled as yours within a moment.")
    it.run('echo "Since March the worker metrics moved to 9103." >> "$STORE/dev-ports.md"')
    it.run("memctl reconcile", holds="0 forgotten")
    it.run("memctl log dev-ports", holds="edit")
    it.say("Forget a note: every version goes, and the receipt says what was left anywhere.")
    it.run("memctl forget metrics-dashboards --yes", holds="metrics-dashboards")
    it.run('grep -rl "cost board lags" "$MEMD_HOME"', exits=1)
    it.say("Now the worst: every note's file is deleted at once. memd does not believe it.")
    it.run('find "$STORE" -name "*.md" ! -name MEMORY.md -delete')
    it.run("memctl reconcile", exits=4, holds="suspended")
    it.run("memctl search staging", holds="staging-is-wiped-nightly-put")
    it.run("echo more | memctl save - --type user --description 'not now'", exits=4, holds="suspended")
    it.run("memctl rebuild", holds="7")
    it.run("memctl list", holds="buildhost-tmp-is-ram")
    it.run("memctl verify")
    it.say("Stop.")
    it.run("memctl stop")
    it.run("memctl --no-autostart status", exits=5)


def main() -> int:
    """Run the walk in a directory that goes afterwards. Returns the exit code."""
    root = Path(tempfile.mkdtemp(prefix="memd-walk-"))
    it = Walk(root)
    try:
        walk(it)
    except WalkError as error:
        sys.stderr.write(f"\nThe walk stopped: {error}\n")
        return 1
    finally:
        subprocess.run(
            [BIN / "memctl", "stop", "--no-autostart"], check=False, env=it.env, cwd=root, capture_output=True
        )
        shutil.rmtree(root)
    sys.stdout.write(
        "\nThat was memd. Nothing of it is left. To use it for real:\n"
        f"  {BIN / 'memctl'} start      starts the daemon for your own home, ~/.local/share/memd\n"
        f"  {BIN / 'memctl'} --help     says the rest\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
