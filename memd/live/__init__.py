"""The live room: stores behind async locks, and the places they are found from. Async begins here."""

from memd.live.library import Library, Place
from memd.live.runtime import Runtime
from memd.live.stores import LiveStore

__all__ = ["Library", "LiveStore", "Place", "Runtime"]
