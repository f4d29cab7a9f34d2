"""Nothing is told on: no word of a request in the log, none of its values in an error (SPEC 12, 15)."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from memd.verbs import VERBS
from support.daemon import Daemon
from support.serving import Client

MARK = "swordfish"
TEXT = f"the pass phrase is {MARK}"
PATH = f"/{MARK}/of/mine"
KEY = "ghp_" + MARK.replace("s", "5") + "0123456789abcdef"
SECRET_WORDS = (MARK, KEY)

BAD_VALUES: tuple[Any, ...] = (
    TEXT,
    PATH,
    KEY,
    "",
    f"../../{MARK}",
    f"\0{MARK}",
    f"{MARK}\n" * 3,
    f"sha256:{MARK}",
    [TEXT],
    {"value": TEXT, KEY: PATH},
    {"name": TEXT, "type": PATH, "description": TEXT, "scope": KEY},
    -1,
    1e308,
    True,
    None,
)

MAY_REPEAT = frozenset({"name", "to", "hash", "from", "key", "session", "ranker"})
"""Parameters by which a caller names a thing: an error may say which one is not there."""


def spoilt(daemon: Daemon) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Requests of every verb with one parameter spoilt, the others as they should be; the parameter's name."""
    good: dict[str, Any] = {
        "cwd": str(daemon.repo), "name": "note", "to": "other", "query": "words", "prompt": "words", "markdown": TEXT,
        "fields": {"type": "user", "description": TEXT}, "session": "s-1", "read_only": False, "scope": "repo",
        "hash": "sha256:" + "0" * 64, "dir": str(daemon.repo), "key": "--no-such--",
    }  # fmt: skip
    for verb in VERBS.values():
        if verb.name == "daemon.stop":
            continue
        fields = msgspec.structs.fields(verb.params)
        needed = {field.encode_name for field in fields if field.required}
        given = {name: good[name] for name in needed if name in good}
        if verb.place:
            given["cwd"] = good["cwd"]
        for field in fields:
            for value in BAD_VALUES:
                params = {**given, field.encode_name: value}
                if field.encode_name == "session" and verb.place:
                    params.pop("cwd", None)
                yield verb.name, field.encode_name, params
        yield verb.name, "unknown", {**given, "x": TEXT}


def test_an_error_holds_no_value_of_the_request_and_the_log_none_of_its_words(daemon: Daemon) -> None:
    daemon.save("note", TEXT)
    (daemon.store / "by-hand.md").write_text(f"---\ndescription: {KEY}\n---\n{TEXT}\n")
    failures = 0
    with Client(daemon.socket) as client:
        for number, (method, spoilt_name, params) in enumerate(spoilt(daemon)):
            reply = client.ask(
                json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
            )
            while "method" in reply:  # a notification: `activity.subscribe` was among them
                reply = client.reply()
            assert reply["id"] == number
            if "error" not in reply:
                continue
            failures += 1
            error = reply["error"]
            assert error["code"] != -32603, (method, spoilt_name, params, daemon.log)
            assert str(daemon.root) not in json.dumps(error)
            assert KEY not in json.dumps(error, ensure_ascii=False), (method, params, error)
            if spoilt_name not in MAY_REPEAT:
                assert MARK not in json.dumps(error), (method, params, error)
    assert failures > 300
    assert not [word for word in SECRET_WORDS if word in daemon.log]


@pytest.mark.parametrize(
    "line",
    [
        f"{TEXT}",
        f'{{"jsonrpc":"2.0","id":1,"method":"{KEY}"}}',
        f'{{"jsonrpc":"{TEXT}","id":1,"method":"memory.save"}}',
        f'{{"jsonrpc":"2.0","id":["{TEXT}"],"method":"memory.save"}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"memory.save","params":"{TEXT}"}}',
        f'{{"jsonrpc":"2.0","id":1,"method":"memory.save","params":["{TEXT}"]}}',
        f'["{TEXT}"]',
        '{"jsonrpc":"2.0","id":1,"method":"memory.save","params":{"markdown":"' + TEXT * 60_000 + '"}}',
    ],
    ids=["no JSON", "method", "version", "id", "params", "positional", "batch", "too long"],
)
def test_a_line_that_is_no_request_is_not_repeated(daemon: Daemon, line: str) -> None:
    with Client(daemon.socket) as client:
        said = json.dumps(client.ask(line.encode()))
        assert MARK not in said
        assert "error" in said
    assert not [word for word in SECRET_WORDS if word in daemon.log]
