"""How long and how large things on the wire may be. Law: each bound has its unit and one name."""

from typing import Annotated

from msgspec import Meta

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
"""The versions of the wire this daemon speaks."""

REQUEST_MAX = 1 << 20
"""Bytes in a request line, its line end not counted."""
REPLY_MAX = 8 << 20
"""Bytes in a reply line, its line end not counted."""
BATCH_MAX = 64
"""Members in a batch."""
CONNECTIONS_MAX = 256
"""Connections served at once; more wait."""
NUMBER_MAX = (1 << 53) - 1
"""The largest number a parameter may hold: what every JSON reader keeps exact."""

Limit = Annotated[int, Meta(ge=1, le=NUMBER_MAX)]
Offset = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]

SessionId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z", max_length=128)]
