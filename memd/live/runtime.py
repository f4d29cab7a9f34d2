"""What the whole daemon shares. Law: filled from above, read from below, and nothing here waits but for the stop."""

import time
from dataclasses import dataclass, field

import anyio


@dataclass
class Runtime:
    """The daemon's state that verbs report: times are monotonic seconds, `findings` are reasons by kind.

    `watching`: changes in every store are heard as they happen.
    """

    stop: anyio.Event = field(default_factory=anyio.Event)
    started: float = field(default_factory=time.monotonic)
    connections: int = 0
    watching: bool = False
    last_event: float | None = None
    last_scan: float | None = None
    findings: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, reason: str) -> None:
        """Keep a trouble for `daemon.status`; one a kind, the latest."""
        self.findings[kind] = reason

    def clear(self, kind: str) -> None:
        """A trouble is over."""
        self.findings.pop(kind, None)
