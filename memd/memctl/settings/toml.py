"""TOML text that gets a part more. Law: it stands at the end between two comments, and goes as it came. Pure."""

from __future__ import annotations

import tomllib

BEGIN = "# memd: begin (memctl setup)"
UNENDED = "# memd: begin (memctl setup; the line before had no end)"
END = "# memd: end"


class UnreadableError(ValueError):
    """The text is no TOML, or would be none with the part."""


def with_part(text: str, part: str) -> str:
    """The text with a part at its end. Raises `UnreadableError`."""
    read(text)
    glue, begin = ("\n", BEGIN) if text.endswith("\n") or not text else ("\n\n", UNENDED)
    after = f"{text}{glue}{begin}\n{part}{END}\n"
    read(after)
    return after


def without_part(text: str) -> str:
    """The text without memd's part, as it was before."""
    for glue, begin in (("\n", BEGIN), ("\n\n", UNENDED)):
        head, found, rest = text.partition(f"{glue}{begin}\n")
        _, ended, tail = rest.partition(f"{END}\n")
        if found and ended:
            return head + tail
    return text


def read(text: str) -> dict[str, object]:
    """What a text says. Raises `UnreadableError`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableError(str(error)) from None
