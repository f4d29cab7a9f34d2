"""One row of the table of verbs. Law: a verb is its name, its two types and the function that runs it."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from msgspec import Struct

from .params import Params, PlaceParams
from .replies import Reply

CallT = TypeVar("CallT")
ParamsT = TypeVar("ParamsT", bound=Params)
ReplyT = TypeVar("ReplyT", bound=Reply)


class Verb(Struct, Generic[CallT, ParamsT, ReplyT], frozen=True):
    """One row of the table of verbs: its wire name, its types and the function that runs it.

    A table is a `Mapping[str, Verb[CallT, Any, Any]]`, keyed by `name`.
    """

    name: str
    params: type[ParamsT]
    reply: type[ReplyT]
    run: Callable[[CallT, ParamsT], Awaitable[ReplyT]]

    @property
    def place(self) -> bool:
        """Whether the verb works on a place, that is, takes `session` or `cwd`."""
        return issubclass(self.params, PlaceParams)
