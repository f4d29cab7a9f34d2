"""What a line of a transcript says, format by format. SPEC section 11."""

import json
import time

import pytest

from memd.history.formats import NOTHING, UNKNOWN, Header, Said, parse, without_injected
from support.transcripts import claude, compaction, header, message, plain

TEXT = {"type": "text", "text": "a"}


def said(line: str) -> Said | None:
    found = parse(line.encode())
    assert found.known
    return found.said


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (message("e", "user", "hello"), Said("e", "user", "hello")),
        (message("e", "assistant", [TEXT, {**TEXT, "text": "b"}]), Said("e", "assistant", "a\nb")),
        (message("e", "user", ["a", {"type": "text", "text": "b"}]), Said("e", "user", "a\nb")),
        (message("e", "assistant", [{"type": "toolCall", "text": "no"}]), None),
        (message("e", "assistant", [{"type": "thinking", "thinking": "no", "text": "no"}]), None),
        (message("e", "toolResult", "no"), None),
        (message("e", "system", "no"), None),
        (message("e", "user", "  \n "), None),
        (message("e", "user", None), None),
        (compaction("e", "short"), Said("e", "summary", "short")),
        (compaction("e", "short").replace("compaction", "branchSummary"), Said("e", "summary", "short")),
        (compaction("e", "short").replace("compaction", "modelChange"), None),
        (claude("user", "hello", uuid_="u"), Said("u", "user", "hello")),
        (claude("assistant", [{"type": "text", "text": "a"}], uuid_="u"), Said("u", "assistant", "a")),
        (claude("user", "hello", isSidechain=True), None),
        (claude("user", "hello", isMeta=True), None),
        (claude("user", "all of it", uuid_="u", isCompactSummary=True), Said("u", "summary", "all of it")),
        ('{"type":"summary","summary":"Title","leafUuid":"x"}', Said(None, "summary", "Title")),
        ('{"type":"system","content":"no","uuid":"u"}', None),
        (plain("user", "hello", id="m"), Said("m", "user", "hello")),
        (plain("assistant", [{"type": "text", "text": "a"}]), Said(None, "assistant", "a")),
        (plain("tool", "no"), None),
        (plain("developer", "no"), None),
    ],
)  # fmt: skip
def test_a_line_of_a_known_kind(line: str, expected: Said | None) -> None:
    assert said(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[1]",
        b'"text"',
        b"null",
        b"{}",
        b'{"role":17}',
        b'{"type":"user","message":17}',
        b'{"type":"user","message":{"content":{"text":"a"}}}',
        b'{"type":"user","message":{"content":[{"type":"text","text":"\xff"}]}}',
        b'{"kind":"header","version":3,"id":"a","cwd":"/"}',
        b'{"kind":"other"}',
        b"\x00" * 40,
        b'{"a":' * 5_000,
        b'{"kind":"entry","type":"mess',
    ],
)
def test_a_line_of_no_known_kind_is_said_to_be_one(line: bytes) -> None:
    assert parse(line) == UNKNOWN


def test_a_header_says_whose_a_session_is() -> None:
    assert parse(header("s", "/r").encode()).header == Header("s", "/r", child=False)
    assert parse(header("s", "/r", parentSessionId="p").encode()).header == Header("s", "/r", child=True)
    assert parse(claude("user", "a", cwd="/r").encode()).header == Header(None, "/r", child=False)
    assert parse(plain("user", "a").encode()).header is None
    assert parse(b'{"type":"progress","cwd":"/r"}') == NOTHING


def test_fields_nobody_needs_may_be_anything() -> None:
    line = json.loads(claude("user", "hello", uuid_="u"))
    line |= {"version": {"deep": [1]}, "toolUseResult": {"stdout": "x"}, "timestamp": None, "extra": [[[]]]}
    assert said(json.dumps(line)) == Said("u", "user", "hello")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("<system-reminder>no</system-reminder>yes", "yes"),
        ("a<system-reminder>\nno\n</system-reminder>b<command-name>/x</command-name>c", "abc"),
        ("<system-reminder>never closed", "<system-reminder>never closed"),
        ("<b>bold</b>", "<b>bold</b>"),
        ("<system-reminder>a <command-name>b</command-name> c</system-reminder>d", "d"),
        ("a\n<<<yi-external 1a2b source=\"memory\">>>\nnote\n<<<end-yi-external 1a2b>>>\nb", "a\n\nb"),
        ("<<<yi-external 1a2b\nnever closed", "<<<yi-external 1a2b\nnever closed"),
        ("say <<<yi-external inside a line", "say <<<yi-external inside a line"),
        ("<command-name>/open <system-reminder>no</system-reminder>yes", "<command-name>/open yes"),
    ],
)  # fmt: skip
def test_what_a_host_put_into_a_message_is_left_out(text: str, expected: str) -> None:
    assert without_injected(text) == expected
    assert said(message("e", "user", text)) == (Said("e", "user", expected.strip()))


def test_only_a_person_s_words_are_looked_through() -> None:
    text = "<system-reminder>an agent's own words</system-reminder>"
    assert said(message("e", "assistant", text)) == Said("e", "assistant", text)


@pytest.mark.parametrize("opening", ["<system-reminder>", "<<<yi-external a\n", "<command-name>x<system-reminder>"])
def test_openings_without_an_end_cost_a_linear_look(opening: str) -> None:
    def cost(times: int) -> float:
        text = opening * times
        begun = time.process_time()
        assert without_injected(text) == text
        return time.process_time() - begun

    small = min(cost(20_000) for _ in range(3))
    assert min(cost(80_000) for _ in range(3)) < small * 10 + 0.05
