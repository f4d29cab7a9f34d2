"""A note from one store into another. Law: durable there before it goes here: a crash leaves both, never neither.

SPEC section 7, `memory.move`: both locks are held, taken in path order, from the first look to the last record.
"""

from contextlib import ExitStack
from typing import NamedTuple, TypeVar

from memd.errors import MemdError
from memd.store.model import Author, Committed, Forget, Forgotten, Outcome, Put, Request, Saved, Take, Taken
from memd.store.store import Store, storage

T = TypeVar("T", bound=Outcome)


class Moved(NamedTuple):
    """What a move did to each store, and what became of it as a whole."""

    source: Committed
    target: Committed
    outcome: Saved | MemdError


def move(source: Store, target: Store, name: str, author: Author) -> Moved:
    """Move the note of this exact name; blocking."""
    outcome: Saved | MemdError
    try:
        outcome = _move(source, target, name, author)
    except MemdError as error:
        outcome = error
    except OSError as error:
        outcome = storage(error)
        source.reload()
        target.reload()
    return Moved(source.told(), target.told(), outcome)


def _move(source: Store, target: Store, name: str, author: Author) -> Saved:
    with ExitStack() as locks:
        for store in sorted((source, target), key=lambda each: each.directory):
            locks.enter_context(store.held())
        taken = _answer(source, Take(name), Taken)
        saved = _answer(target, Put(name, taken.raw, author), Saved)
        _answer(source, Forget(name, author), Forgotten)
    return saved


def _answer(store: Store, request: Request, kind: type[T]) -> T:
    """What one request did to a store whose lock is held. Errors: whatever refused it; OSError."""
    (outcome,) = store.commit_held([request])
    if isinstance(outcome, MemdError):
        raise outcome
    if not isinstance(outcome, kind):
        raise TypeError(kind)
    return outcome
