"""The live room: stores behind async locks, and the places they are found from. Async begins here."""

from memd.live.feed import Feed, Outbox
from memd.live.history import Answer
from memd.live.library import Library, Place
from memd.live.roots import Look, Root, Roots
from memd.live.runtime import Runtime
from memd.live.sessions import LiveSession
from memd.live.stores import LiveStore

__all__ = [
    "Answer",
    "Feed",
    "Library",
    "LiveSession",
    "LiveStore",
    "Look",
    "Outbox",
    "Place",
    "Root",
    "Roots",
    "Runtime",
]
