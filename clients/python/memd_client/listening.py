"""The daemon's activity, as it happens. Law: a connection of its own, that nothing but activity crosses.

Whoever lags is dropped by the daemon: what then was not heard is not told again, and the store is what counts.
SPEC 7, `activity.subscribe`.
"""

from __future__ import annotations

from memd_client.errors import ConnectionLost, NoAnswer

TYPE_CHECKING = False  # the real one would import typing, 2 ms
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from memd_client.replies import Event
    from memd_client.wire import Wire


class Activity:
    """Events of the daemon, one a turn of a `for`; a context manager. `timeout` is in seconds for each event.

    A turn raises `NoAnswer` when no event came in time (the next goes on listening), and `ConnectionLost` when the
    daemon went away, or dropped this listener because it lagged: listen anew.
    """

    def __init__(self, wire: Wire, timeout: float | None) -> None:
        self._wire = wire
        self._timeout = timeout

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """The next event; it waits for one."""
        try:
            event: Event = self._wire.notified("activity", self._timeout)
        except TimeoutError:
            raise NoAnswer(f"no activity within {self._timeout} s") from None
        except OSError as error:
            self._wire.close()
            raise ConnectionLost(f"the connection to {self._wire.path} broke: {error}") from error
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more. May be repeated."""
        self._wire.close()
