"""The screen. Law: it draws a `State` and asks a `Source`; what is decided is decided there.

The list draws only the lines that are seen, so that its length costs nothing. Questions to the daemon are asked in
threads: the screen never waits. The only room that imports textual. SPEC section 14.
"""

import asyncio
import signal
import time
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Static

from memd.memctl.curator.source import Source
from memd.memctl.curator.state import Key, Line, Note, State
from memd.memctl.layout import cells_in, cut
from memd.memctl.terminal import safe_line, safe_text
from memd_client.errors import MemdError

PAGE = 10
NOTHING = "no notes"

_HEADING = Style(bold=True, dim=True)
_NAME = Style(bold=True)
_HOOK = Style(dim=True)
_CHOSEN = Style(reverse=True)
_SHADOWED = Style(dim=True, italic=True)


class NoteList(ScrollView, can_focus=True):
    """The notes of a state, grouped by scope; only what is seen is drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", "choose", key_display="↑↓"),
        Binding("pageup", f"move(-{PAGE})", show=False),
        Binding("pagedown", f"move({PAGE})", show=False),
        Binding("home,g", "move(-1000000)", show=False),
        Binding("end,G", "move(1000000)", show=False),
    ]

    class Moved(Message):
        """The choice is to go so many notes down."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Pointed(Message):
        """A line was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self) -> None:
        super().__init__(id="notes")
        self.state = State()

    def show(self, state: State) -> None:
        """Draw a state, its choice in view."""
        self.state = state
        self.virtual_size = Size(self.size.width, max(1, len(state.lines)))
        top, height = round(self.scroll_y), max(1, self.size.height)
        if not top <= state.place < top + height:
            self.scroll_to(y=max(0, state.place - height // 2), animate=False)
        self.refresh()

    def action_move(self, by: int) -> None:
        """Ask for the choice to be moved."""
        self.post_message(self.Moved(by))

    def on_click(self, event: object) -> None:
        """Choose the line under the pointer."""
        y = getattr(event, "y", 0)
        self.post_message(self.Pointed(y + round(self.scroll_y)))

    def render_line(self, y: int) -> Strip:
        """One line of the list as it is seen."""
        at, width = y + round(self.scroll_y), self.size.width
        lines = self.state.lines
        if not lines:
            return Strip([Segment(cut(NOTHING, width), _HOOK)] if y == 0 else []).adjust_cell_length(width)
        if at >= len(lines):
            return Strip.blank(width)
        is_chosen = lines[at].note is not None and lines[at].note == self.state.note
        strip = Strip(list(_segments(lines[at], width))).adjust_cell_length(width)
        return strip.apply_style(_CHOSEN) if is_chosen else strip


def _segments(line: Line, width: int) -> list[Segment]:
    """A line of the list in its styles, cut to the width."""
    note = line.note
    if note is None:
        return [Segment(cut(f"{line.scope} · {line.count}", width), _HEADING)]
    name = cut(safe_line(note.name), max(1, width * 2 // 5))
    mark = " shadowed by repo" if note.is_shadowed else ""
    left = max(0, width - 2 - cells_in(name) - cells_in(mark) - 2)
    return [
        Segment("  "),
        Segment(name, _NAME),
        Segment(mark, _SHADOWED),
        Segment("  "),
        Segment(cut(safe_line(note.hook), left) if left else "", _HOOK),
    ]


class Question(ModalScreen[bool]):
    """A question that only `y` answers with yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "yes"),
        Binding("n,escape,enter,q", "decline", "no"),
    ]

    def __init__(self, note: Note) -> None:
        super().__init__()
        self.note = note

    def compose(self) -> ComposeResult:
        """The question."""
        text = Text()
        text.append("Forget this note and every version of it?\n\n", style="bold")
        text.append(f"{safe_line(self.note.name)} · {self.note.scope}\n")
        text.append(f"{safe_line(self.note.hook)}\n\n", style="dim")
        text.append("y forgets it, any other answer keeps it")
        yield Static(text, id="question")

    def action_agree(self) -> None:
        """Close with a yes."""
        self.dismiss(True)

    def action_decline(self) -> None:
        """Close with a no."""
        self.dismiss(False)


class History(ModalScreen[None]):
    """Who did what to a note."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,h,enter", "dismiss", "back")]

    def __init__(self, note: Note, text: Text) -> None:
        super().__init__()
        self.note = note
        self.text = text

    def compose(self) -> ComposeResult:
        """The records, newest first."""
        with VerticalScroll(id="history"):
            yield Static(Text(f"{safe_line(self.note.name)} · {self.note.scope}\n", style="bold"))
            yield Static(self.text)


class Curator(App[None]):
    """Notes by scope on the left, the chosen one's text on the right."""

    TITLE = "memctl browse"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #notes { width: 1fr; }
    #right { width: 1fr; border-left: solid $panel; padding: 0 1; }
    #search { border: none; height: 1; padding: 0; }
    #said { height: 1; color: $text-muted; }
    #question, #history { width: 70%; max-height: 80%; background: $surface; border: round $primary; padding: 1 2; }
    Question, History { align: center middle; }
    .wide #notes { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "read", "read"),
        Binding("slash", "search", "search", key_display="/"),
        Binding("s", "scope", "scope"),
        Binding("h", "history", "history"),
        Binding("d", "delete", "delete"),
        Binding("escape", "leave", "back"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, source: Source, state: State) -> None:
        super().__init__()
        self.source = source
        self.state = state
        self.previewed: tuple[str, str, str] | None = None

    def compose(self) -> ComposeResult:
        """The list, the preview, what was said last, the keys."""
        yield Input(placeholder="search names, hooks and bodies", id="search")
        with Horizontal():
            yield NoteList()
            with Vertical(id="right"):
                yield VerticalScroll(Static(id="body", markup=False), id="preview")
        yield Static(id="said", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin: the list, and the listener. Whoever ends the program finds the terminal as it was."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.query_one("#search").display = False
        self.query_one(NoteList).focus()
        self.load()
        self.listen()

    # -- what comes from elsewhere

    @work(thread=True, exclusive=True, group="load")
    def load(self) -> None:
        """Ask for the notes, and again for what a search finds among them."""
        query = self.state.query
        try:
            notes = self.source.notes()
            found = self.source.found(query) if query else None
        except MemdError as error:
            self.call_from_thread(self.say, error.message)
            return
        self.call_from_thread(self.take, notes, query, found)

    def take(self, notes: list[Note], query: str, found: list[Key] | None) -> None:
        """Show the notes there are, and what a search found among them if it is still what is searched for."""
        state = self.state.with_notes(notes)
        self.show(state.with_query(query, found) if query == state.query else state)

    @work(thread=True, group="listen")
    def listen(self) -> None:
        """Hear of changes made elsewhere while the curator is open."""
        self.source.listen(partial(self.call_from_thread, self.load), lambda: self.is_running)

    @work(thread=True, exclusive=True, group="preview")
    def preview(self, note: Note) -> None:
        """Ask for the text of a note."""
        try:
            text = self.source.text(note)
        except MemdError as error:
            text = error.message
        self.call_from_thread(self.previews, note, text)

    @work(thread=True, exclusive=True, group="forget")
    def forget(self, note: Note) -> None:
        """Forget a note that the person said yes to."""
        try:
            receipt = self.source.forget(note)
        except MemdError as error:
            self.call_from_thread(self.say, error.message)
            return
        if receipt is None:
            self.call_from_thread(self.say, f"{safe_line(note.name)} was changed meanwhile; nothing was forgotten")
        else:
            left = f"; {len(receipt['left'])} files left with its text" if receipt["left"] else "; no copy left"
            versions = f"{receipt['versions']} version" + "s" * (receipt["versions"] != 1)
            self.call_from_thread(self.say, f"forgot {safe_line(note.name)} · {note.scope} — {versions}{left}")
        self.call_from_thread(self.load)

    @work(thread=True, exclusive=True, group="history")
    def tell_history(self, note: Note) -> None:
        """Ask for a note's records and show them."""
        try:
            records = self.source.history(note)
        except MemdError as error:
            self.call_from_thread(self.say, error.message)
            return
        text = Text()
        for record in records:
            at = time.strftime("%Y-%m-%d %H:%M", time.localtime(record["at"]))
            who = record.get("session") or record.get("by") or "-"
            text.append(f"{at}  ", style="dim")
            text.append(f"{record['op']:7}", style="bold")
            text.append(f" {safe_line('you' if who == 'cli' else str(who))}  ")
            text.append(f"{record['hash'].removeprefix('sha256:')[:12]}\n", style="dim")
        self.call_from_thread(self.push_screen, History(note, text))

    # -- what is shown

    def show(self, state: State) -> None:
        """Show a state: the list, and the text of its choice."""
        self.state = state
        self.query_one(NoteList).show(state)
        note = state.note
        wanted = None if note is None else (*note.key, note.hash)
        if wanted == self.previewed:
            return
        self.previewed = wanted
        if note is None:
            self.query_one("#body", Static).update("")
        else:
            self.preview(note)

    def previews(self, note: Note, text: str) -> None:
        """Show the text of a note, if it is still the one that is chosen."""
        if self.previewed == (*note.key, note.hash):
            self.query_one("#body", Static).update(safe_text(text))
            self.query_one("#preview", VerticalScroll).scroll_home(animate=False)

    def say(self, text: str) -> None:
        """Say something in the line above the keys."""
        self.query_one("#said", Static).update(safe_line(text))

    # -- what the person does

    def on_note_list_moved(self, event: NoteList.Moved) -> None:
        """Move the choice."""
        self.show(self.state.moved(event.by))

    def on_note_list_pointed(self, event: NoteList.Pointed) -> None:
        """Choose what was clicked."""
        if event.place < len(self.state.lines) and (note := self.state.lines[event.place].note) is not None:
            self.show(self.state.choosing(note.key))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search for what is typed."""
        query = event.value.strip()
        if not query:
            self.show(self.state.with_query("", None))
            return
        self.state = self.state.with_query(query, self.state.found)
        self.load()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go on among what was found."""
        self.query_one(NoteList).focus()

    def action_search(self) -> None:
        """Open the line to search in."""
        search = self.query_one("#search")
        search.display = True
        self.set_focus(search)  # at once: what is typed next is not for the list, where `d` deletes

    def action_scope(self) -> None:
        """Show both scopes, or one."""
        self.show(self.state.next_scope())
        self.say(f"scope: {self.state.scope or 'both'}")

    def action_read(self) -> None:
        """Give the text the whole screen, or the list its half back."""
        if self.state.note is not None:
            self.toggle_class("wide")
            self.query_one("#preview" if self.has_class("wide") else "#notes").focus()

    def action_history(self) -> None:
        """Show who did what to the note."""
        if self.state.note is not None:
            self.tell_history(self.state.note)

    def action_delete(self) -> None:
        """Ask, and forget the very note that was asked about."""
        note = self.state.note
        if note is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.forget(note)
            else:
                self.say("nothing was forgotten")

        self.push_screen(Question(note), answered)

    def action_leave(self) -> None:
        """Close what is open, one thing at a time; at the last the curator."""
        search = self.query_one("#search", Input)
        if self.has_class("wide"):
            self.remove_class("wide")
        elif search.display:
            search.value = ""
            search.display = False
        elif self.state.scope is not None:
            self.show(self.state.with_scope(None))
            self.say("scope: both")
        else:
            self.exit()
            return
        self.query_one(NoteList).focus()


def run(source: Source, state: State) -> None:
    """Show the curator, beginning with a state, until the person leaves it."""
    try:
        Curator(source, state).run()
    finally:
        source.close()
