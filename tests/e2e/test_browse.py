"""The curator on a screen of its own, over a real daemon. SPEC section 14, `browse`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Static

from memd.memctl.curator.app import Curator, NoteList, Question
from memd.memctl.curator.source import Source
from memd.memctl.curator.state import Note, State
from support.daemon import Daemon, running_daemon
from support.memctl_program import memctl, memctl_on_terminal

WAIT = 20.0


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    with running_daemon() as daemon:
        for name in [name for name in os.environ if name.startswith(("MEMD_", "XDG_"))]:
            monkeypatch.delenv(name)
        for name in ("HOME", "MEMD_HOME"):
            monkeypatch.setenv(name, daemon.env[name])
        yield daemon


class Seat:
    """Somebody in front of the curator."""

    def __init__(self, app: Curator, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def sees(self, what: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WAIT):
            while not what():
                await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        await self.pilot.press(*keys)

    @property
    def names(self) -> list[str]:
        """The notes in the list, a global one with a star."""
        notes = [line.note for line in self.app.state.lines if line.note is not None]
        return [note.name + "*" * (note.scope == "global") for note in notes]

    @property
    def body(self) -> str:
        """The text on the right."""
        return str(self.app.query_one("#body", Static).content)

    @property
    def said(self) -> str:
        """What was said last."""
        return str(self.app.query_one("#said", Static).content)

    @property
    def drawn(self) -> list[str]:
        """The list as it is drawn."""
        notes = self.app.query_one(NoteList)
        return [notes.render_line(y).text.rstrip() for y in range(notes.size.height)]


def browsing(
    daemon: Daemon,
    act: Callable[[Seat], Awaitable[None]],
    state: State | None = None,
    source: type[Source] = Source,
) -> None:
    async def main() -> None:
        app = Curator(source(str(daemon.repo), may_start=False), state or State())
        async with app.run_test(size=(100, 24)) as pilot:
            seat = Seat(app, pilot)
            await seat.sees(lambda: app.state.lines)
            await act(seat)
        app.source.close()

    asyncio.run(main())


def test_notes_are_shown_by_scope_with_their_texts(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls at low tide.")
    daemon.save("lamp", "It is lit at dusk.")
    daemon.save("lamp", "Everywhere else it is not.", scope="global")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: seat.names == ["crane", "lamp", "lamp*"])
        await seat.sees(lambda: "It stalls at low tide." in seat.body)
        assert seat.drawn[:5] == [
            "repo · 2",
            "  crane  About crane",
            "  lamp  About lamp",
            "global · 1",
            "  lamp shadowed by repo  About lamp",
        ]
        await seat.press("down", "down")
        await seat.sees(lambda: "Everywhere else it is not." in seat.body)
        await seat.press("enter")
        assert seat.app.query_one("#notes").display is False
        await seat.press("escape", "up")
        await seat.sees(lambda: "It is lit at dusk." in seat.body)

    browsing(daemon, act)


def test_changes_made_elsewhere_are_followed(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls.")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: "It stalls." in seat.body)
        daemon.save("crane", "It was mended.")
        await seat.sees(lambda: "It was mended." in seat.body)
        daemon.save("weir", "New.")
        (daemon.store / "by-hand.md").write_text("by hand\n")
        await seat.sees(lambda: seat.names == ["by-hand", "crane", "weir"])
        assert seat.app.state.chosen == ("repo", "crane")
        daemon.call("memory.forget", name="crane")
        await seat.sees(lambda: seat.names == ["by-hand", "weir"])
        assert seat.app.state.chosen == ("repo", "weir")

    browsing(daemon, act)


def test_a_filter_and_a_search_never_leave_a_hidden_note_chosen(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls at low tide.")
    daemon.save("tide", "The table hangs in the office.", scope="global")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: len(seat.names) == 2)
        await seat.press("down")
        assert seat.app.state.chosen == ("global", "tide")
        await seat.press("s")
        assert (seat.names, seat.app.state.chosen, seat.said) == (["crane"], ("repo", "crane"), "scope: repo")
        await seat.press("s")
        assert (seat.names, seat.app.state.chosen) == (["tide*"], ("global", "tide"))
        await seat.press("escape")
        assert len(seat.names) == 2
        await seat.press("slash", *"stalls")
        await seat.sees(lambda: seat.names == ["crane"])
        assert seat.app.state.chosen == ("repo", "crane")
        await seat.press("enter", "d")
        await seat.sees(lambda: isinstance(seat.app.screen, Question))
        await seat.press("escape", "escape")
        await seat.sees(lambda: len(seat.names) == 2)

    browsing(daemon, act)


def test_what_an_earlier_search_found_is_not_shown_for_a_later_one(daemon: Daemon) -> None:
    for name in ("crane", "tide"):
        daemon.save(name)

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: seat.names == ["crane", "tide"])
        notes = list(seat.app.state.notes)
        late = ("ti", [("repo", "tide")])  # asked before the line was emptied, answered after
        seat.app.take(notes, *late)
        assert seat.names == ["crane", "tide"]
        await seat.press("/", *"crane")
        await seat.sees(lambda: seat.names == ["crane"])
        seat.app.take(notes, *late)
        assert seat.names == ["crane"]

    browsing(daemon, act)


def test_a_delete_asks_and_shows_the_receipt(daemon: Daemon) -> None:
    for name in ("crane", "lamp"):
        daemon.save(name, "text")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: len(seat.names) == 2)
        await seat.press("d")
        await seat.sees(lambda: isinstance(seat.app.screen, Question))
        await seat.press("n")
        await seat.sees(lambda: seat.said == "nothing was forgotten")
        await seat.press("d")
        await seat.sees(lambda: isinstance(seat.app.screen, Question))
        await seat.press("y")
        await seat.sees(lambda: seat.said == "forgot crane · repo — 1 version; no copy left")
        await seat.sees(lambda: seat.names == ["lamp"])

    browsing(daemon, act)
    assert daemon.names() == ["lamp"]


def test_a_note_that_changed_under_the_question_is_kept(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls.")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: "It stalls." in seat.body)
        await seat.press("d")
        await seat.sees(lambda: isinstance(seat.app.screen, Question))
        daemon.save("crane", "It was mended.")
        await seat.sees(lambda: seat.app.state.note is not None and seat.app.state.note.saves == 2)
        await seat.press("y")
        await seat.sees(lambda: seat.said == "crane was changed meanwhile; nothing was forgotten")

    browsing(daemon, act)
    assert daemon.call("memory.read", name="crane")["text"] == "It was mended."


def test_the_history_of_a_note(daemon: Daemon) -> None:
    daemon.save("crane", "It stalls.")
    daemon.save("crane", "It runs.")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: seat.names == ["crane"])
        await seat.press("h")
        await seat.sees(lambda: seat.app.screen.query("#history Static"))
        text = "".join(str(part.content) for part in seat.app.screen.query("#history Static").results(Static))
        assert text.count("save") == 2
        assert text.count("you") == 2
        await seat.press("escape")
        await seat.sees(lambda: not seat.app.screen.query("#history Static"))

    browsing(daemon, act)


class Many(Source):
    """A store of very many notes, of which nobody has to make the files."""

    def notes(self) -> list[Note]:
        """Five thousand of them."""
        return [
            Note(
                scope="repo",
                name=f"note-{number:04}",
                type=None,
                hook=f"hook {number}",
                hash="sha256:" + "0" * 64,
                saves=0,
                reads=0,
                is_shadowed=False,
            )
            for number in range(5_000)
        ]

    def text(self, note: Note) -> str:
        """The text of one."""
        return note.hook


def test_five_thousand_notes_are_drawn_a_screen_at_a_time(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(seat: Seat) -> None:
        await seat.sees(lambda: len(seat.names) == 5_000)
        lines: list[int] = []
        notes = seat.app.query_one(NoteList)
        draw = notes.render_line

        def drawing(y: int) -> Strip:
            lines.append(y)
            return draw(y)

        monkeypatch.setattr(notes, "render_line", drawing)
        await seat.press("end")
        await seat.sees(lambda: seat.app.state.chosen == ("repo", "note-4999"))
        await seat.sees(lambda: any("note-4999" in line for line in seat.drawn))
        assert len(lines) < 500
        await seat.press("home")
        await seat.sees(lambda: any("note-0000" in line for line in seat.drawn))
        await seat.sees(lambda: seat.body == "hook 0")

    browsing(daemon, act, source=Many)


def test_nothing_a_terminal_would_obey_is_drawn(daemon: Daemon) -> None:
    (daemon.store_of(daemon.repo)).mkdir(parents=True, mode=0o700)
    (daemon.store / "odd.md").write_text(
        "hook \x1b[31mred \u202eback [bold]not markup[/bold]\n\n\x1b]0;title\x07body\n"
    )
    daemon.call("memory.reconcile")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: "body" in seat.body)
        assert "[bold]not markup[/bold]" in seat.body
        for text in (seat.body, *seat.drawn):
            assert not any(char in text for char in ("\x1b", "\x07", "\u202e"))

    browsing(daemon, act)


def test_it_begins_in_the_scope_that_was_asked_for(daemon: Daemon) -> None:
    daemon.save("crane", "text")
    daemon.save("tide", "text", scope="global")

    async def act(seat: Seat) -> None:
        await seat.sees(lambda: seat.names == ["tide*"])

    browsing(daemon, act, State(scope="global"))


def test_where_it_cannot_be_shown_it_says_so(daemon: Daemon, tmp_path: Path) -> None:
    piped = memctl(daemon.env, "browse", cwd=daemon.repo)
    assert (piped.code, "terminal" in piped.err) == (2, True)
    as_json = memctl_on_terminal(daemon.env, "-C", str(daemon.repo), "--json", "browse")
    assert (as_json.code, "no JSON" in as_json.err) == (2, True)
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')\n")
    without = {**daemon.env, "PYTHONPATH": f"{tmp_path}{os.pathsep}{daemon.env['PYTHONPATH']}"}
    ran = memctl_on_terminal(without, "-C", str(daemon.repo), "browse")
    assert ran.code == 2
    assert "pip install 'memd[browse]'" in ran.err
    daemon.kill()
    gone = memctl_on_terminal(daemon.env, "-C", str(daemon.repo), "browse")
    assert gone.code == 5
