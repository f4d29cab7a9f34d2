"""Option values. Law: what is wrong by its form is refused before anything is sent."""

from __future__ import annotations

from argparse import ArgumentTypeError

from memd.memctl.ctl import EVERY

NOTE_TYPES = ("user", "feedback", "project", "reference")
HASH_PREFIX = "sha256:"
HASH_LENGTH = 64
SECONDS_DIGITS = 12


def count(text: str) -> int:
    """A number from 1 on."""
    if not (text.isdecimal() and 1 <= int(text) <= EVERY):
        raise ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def short_hash(text: str) -> str:
    """A version's hash without its prefix, whole or only its beginning, from 4 digits on."""
    digits = text.removeprefix(HASH_PREFIX)
    if not 4 <= len(digits) <= HASH_LENGTH or not set(digits) <= set("0123456789abcdef"):
        raise ArgumentTypeError(f"{text} is not a hash: 4 to {HASH_LENGTH} digits of 0-9 and a-f")
    return digits


def expectation(text: str) -> str | None:
    """What a save may expect: a whole hash, `exists`, or None for `null`: no such note yet (SPEC 3)."""
    if text == "null":
        return None
    if text == "exists":
        return text
    if len(short_hash(text)) < HASH_LENGTH:
        raise ArgumentTypeError(f"{text} is only the beginning of a hash; null, exists or a whole hash")
    return text


def pair(text: str) -> tuple[str, str]:
    """A field's key and value, from `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError(f"{text} is not KEY=VALUE")
    return key, value


def moment(text: str) -> float:
    """Unix seconds: as such, as an ISO date with or without a time, or as an age (`90s 30m 2h 3d 1w`)."""
    if text.isdecimal() and len(text) <= SECONDS_DIGITS:
        return float(text)
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}.get(text[-1:])
    if seconds and text[:-1].isdecimal() and len(text) <= SECONDS_DIGITS:
        import time

        return time.time() - int(text[:-1]) * seconds
    from datetime import datetime  # 2 ms that only a date is worth

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ArgumentTypeError(
            f"{text} is no time: 2024-05-01, 2024-05-01T12:00, 90s, 30m, 2h, 3d, 1w or unix seconds"
        ) from None
