"""What happens in the stores, told to whoever listens. Law: telling waits for nobody, fails nobody, shows no body.

An event is told when its record is durable, before the reply to whoever caused it, from `LiveStore.apply` or a verb.
Lines are made once for all listeners, and only while there is one; each listener has an outbox with a bound, and one
that lags past it is dropped. SPEC section 7, `activity.subscribe`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec

from memd import journal
from memd.focus import text
from memd.live.stores import BY_HAND, LiveStore
from memd.protocol import Activity, ActivityKind, Pointer, Telemetry
from memd.store import Journaled

OUTBOX_MAX = 1_024
"""Notifications that may wait for one client; who lags past that is dropped."""
SINGLY_MAX = 64
"""Changes by hand that one commit tells of one by one; more of them, after a checkout say, are one event a kind."""

BY_THE_BATCH = frozenset({"claude", "import", "kimi", "store"})
"""Writers that bring many notes at a time: whoever runs them tells of the batch, with `imported`."""

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)


class Outbox:
    """Lines on their way to one client beside its answers.

    `drop` is called once when more than `OUTBOX_MAX` of them wait: it ends the connection, and must not block.
    """

    __slots__ = ("_drop", "_filled", "_leave", "_lines", "has_ended")

    def __init__(self, drop: Callable[[], object]) -> None:
        self._drop = drop
        self._lines: list[bytes] = []
        self._filled: anyio.Event | None = None
        self._leave: Callable[[], object] | None = None
        self.has_ended = False

    @property
    def is_in_use(self) -> bool:
        """Whether somebody may put lines in."""
        return self._leave is not None

    def use(self, leave: Callable[[], object]) -> None:
        """Say what is to be done when the client is gone; at once when it is."""
        if self.has_ended:
            leave()
        else:
            self._leave = leave

    def push(self, line: bytes) -> None:
        """Add a line with its line end, or drop the client that has too many. Never blocks, raises nothing."""
        if self.has_ended:
            return
        if len(self._lines) >= OUTBOX_MAX:
            self.end()
            self._drop()
            return
        self._lines.append(line)
        if self._filled is not None:
            self._filled.set()

    async def take(self) -> bytes:
        """Every line that waits, as soon as one does."""
        while not self._lines:
            self._filled = anyio.Event()
            await self._filled.wait()
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def end(self) -> None:
        """The client is gone: no line comes any more. May be repeated."""
        self.has_ended = True
        self._lines = []
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


# -- who hears -----------------------------------------------------------------------------------------------


class Event(msgspec.Struct, frozen=True):
    """What is told, and the store by which listeners choose, as `heard_as` names it."""

    activity: Activity
    store: Path


class Listener:
    """What one client has asked to hear: each place it named, or all."""

    __slots__ = ("hears_all", "sessions", "stores")

    def __init__(self) -> None:
        self.hears_all = False
        self.stores: set[Path] = set()
        self.sessions: set[str] = set()

    def hears(self, event: Event) -> bool:
        """Whether the event is of a store it listens to, or of a session, wherever that has gone since."""
        return self.hears_all or event.store in self.stores or event.activity.session in self.sessions


class Feed:
    """The listeners of one daemon."""

    def __init__(self) -> None:
        self._listeners: dict[Outbox, Listener] = {}

    @property
    def listener_count(self) -> int:
        """How many clients listen."""
        return len(self._listeners)

    def subscribe(self, outbox: Outbox, stores: Iterable[LiveStore] | None, session: str | None = None) -> None:
        """Tell a client from now on of these stores and of this session, besides what it hears; None: of all."""
        listener = self._listeners.get(outbox)
        if listener is None:
            listener = self._listeners[outbox] = Listener()
            outbox.use(partial(self._listeners.pop, outbox, None))
        if stores is None:
            listener.hears_all = True
        else:
            listener.stores.update(map(heard_as, stores))
        if session is not None:
            listener.sessions.add(session)

    def publish(self, event: Event) -> None:
        """Tell one event. Never blocks, raises nothing; for the event loop."""
        self.publish_all((event,))

    def publish_all(self, events: Iterable[Event]) -> None:
        """Tell events in order; an iterator is not even begun while nobody listens. Raises nothing."""
        if not self._listeners:
            return
        try:
            for event in events:
                self._tell(event)
        except Exception as error:  # noqa: BLE001 - the boundary: what was done is done, told or not
            _log.error("an event could not be told: %s", type(error).__qualname__)

    def _tell(self, event: Event) -> None:
        hearing = [outbox for outbox, listener in self._listeners.items() if listener.hears(event)]
        if not hearing:
            return
        line = _encode({"jsonrpc": "2.0", "method": "activity", "params": event.activity}) + b"\n"
        for outbox in hearing:
            outbox.push(line)


def heard_as(store: LiveStore) -> Path:
    """What names a store to listeners: whose it is, since where it is may be settled later than they ask (SPEC 1)."""
    return store.store.origin or store.directory


# -- what is told --------------------------------------------------------------------------------------------


def changes(
    store: LiveStore, journaled: Sequence[Journaled], saves_of: Callable[[str], int | None]
) -> Iterator[Event]:
    """The events of one commit; `saves_of` gives how many saves a session has made by now."""
    by_hand = [each for each in journaled if each.record.by == BY_HAND]
    many = len(by_hand) > SINGLY_MAX
    if many:
        yield from changed_by_hand(store, by_hand)
    for each in journaled:
        by = each.record.by
        if by not in BY_THE_BATCH and not (many and by == BY_HAND):
            yield changed(store, each, saves_of)


def changed_by_hand(store: LiveStore, journaled: Sequence[Journaled]) -> Iterator[Event]:
    """At most two events of many changes by hand."""
    deleted = sum(each.record.op == journal.FORGET for each in journaled)
    edited = len(journaled) - deleted
    if edited:
        yield together("memory_edit", store, f"memory · {edited} notes edited by hand · {store.scope}")
    if deleted:
        yield together("memory_delete", store, f"memory · {deleted} notes forgotten by hand · {store.scope}")


def changed(store: LiveStore, journaled: Journaled, saves_of: Callable[[str], int | None]) -> Event:
    """The event of one record."""
    record, scope = journaled.record, store.scope
    name, hook = text.line(record.name), text.line(journaled.hook)
    about = f" · {scope} — {hook}" if hook else f" · {scope}"
    event: ActivityKind = "memory_edit"
    line, saved = f"memory · {record.op}ed {name}{about}", None
    if record.op == journal.SAVE:
        event, line = "memory_update" if journaled.replaced else "memory_write", f"memory · saved {name}{about}"
        saved = None if record.session is None else saves_of(record.session)
    elif record.op == journal.FORGET:
        event, line = "memory_delete", f"memory · forgot {name} · {scope}"
    activity = Activity(
        event=event,
        session=record.session,
        scope=scope,
        line=line,
        saved=saved,
        telemetry=Telemetry(scope=scope, slug=name),
        pointer=Pointer(op=record.op, name=record.name, scope=scope, hash=record.hash),
    )
    return Event(activity, heard_as(store))


def imported(store: LiveStore, new: int, updated: int) -> Event:
    """Notes that came from elsewhere, all of one call in one event: how many of them, and no name."""
    line = f"memory · {new} imported · {updated} updated · {store.scope}"
    return together("memory_import", store, line)


def together(event: ActivityKind, store: LiveStore, line: str) -> Event:
    """An event of many notes of a store."""
    activity = Activity(event=event, scope=store.scope, line=line, telemetry=Telemetry(scope=store.scope))
    return Event(activity, heard_as(store))


def session_started(repo: LiveStore, session: str, lines: Iterable[str]) -> Event:
    """A session that began or went on in a repository; its line is the start's lines, joined by line ends."""
    line = "\n".join(map(text.line, lines))
    activity = Activity(event="session_start", session=session, line=line, telemetry=Telemetry())
    return Event(activity, heard_as(repo))


def index_truncated(repo: LiveStore, dropped: int, session: str | None = None) -> Event:
    """An index that a kernel asked for and that did not hold all: how many entries it left out."""
    line = f"memory · index cut · {dropped} entries omitted"
    activity = Activity(
        event="memory_index_truncated", session=session, line=line, telemetry=Telemetry(dropped_count=dropped)
    )
    return Event(activity, heard_as(repo))
