"""`memd_client.pages`: a list that one reply cannot hold. Law: the room for a reply is chance, the list is not."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from memd_client.errors import TooLarge
from memd_client.pages import LONGEST, whole

Ask = Callable[[int | None, int], Any]


def row(number: int, size: int = 1) -> dict[str, Any]:
    return {"scope": "repo" if number % 2 else "global", "name": f"n{number:05}", "body": "x" * size}


def store(rows: list[dict[str, Any]], room: int) -> Ask:
    """A daemon whose replies hold so many characters."""

    def ask(limit: int | None, offset: int) -> Any:
        page = rows[offset:] if limit is None else rows[offset : offset + limit]
        if sum(len(each["body"]) for each in page) > room:
            raise TooLarge("too large")
        return {"notes": page, "total": len(rows)}

    return ask


@pytest.mark.parametrize("seed", range(20))
def test_every_note_comes_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    rows = [row(number, chance.choice((1, 10, 100))) for number in range(chance.choice((0, 1, 5, 3 * LONGEST)))]
    assert whole(store(rows, room=chance.choice((100, 5000, 10**6)))) == {"notes": rows, "total": len(rows)}


def test_what_one_reply_holds_is_asked_for_once() -> None:
    asked: list[tuple[int | None, int]] = []
    reply = {"notes": [row(1)], "total": 1, "notice": "as it came"}

    def ask(limit: int | None, offset: int) -> Any:
        asked.append((limit, offset))
        return reply

    assert whole(ask) is reply
    assert asked == [(None, 0)]


def test_a_note_that_moves_into_the_next_page_is_no_second_one() -> None:
    rows = [row(number, 10) for number in range(6)]
    ask = store(rows, room=20)

    def changing(limit: int | None, offset: int) -> Any:
        reply = ask(limit, offset)
        if offset == 2 and len(rows) == 6:
            rows.insert(0, row(99, 10))
        return reply

    assert [each["name"] for each in whole(changing)["notes"]] == [f"n{number:05}" for number in range(6)]


def test_a_note_that_no_reply_holds_is_an_error() -> None:
    with pytest.raises(TooLarge):
        whole(store([row(0, 2)], room=1))
