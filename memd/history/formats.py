"""What a line of a transcript says. Law: a line is words that somebody said, or it is passed over; never fatal.

Three kinds of line are known: the first seed's (`kind` header or entry, version 4), Claude Code's (`type` user,
assistant or summary) and the plain message (`role` and `content`) of kernels that keep no more. Tool calls, their
arguments and results, thinking, sidechains and what a system put into a person's mouth are not indexed. Pure.
SPEC section 11.
"""

import re
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["user", "assistant", "summary"]
"""Who said an entry: a person, an agent, or a compaction of both."""

VERSION = 4
"""The version of the first seed's transcripts that is read."""


class Said(NamedTuple):
    """One entry: its id, None where the line has none, who said it, and the words."""

    id: str | None
    kind: Kind
    text: str


class Header(NamedTuple):
    """What a line tells of its session; None where it does not. A child's sessions are not searched."""

    session: str | None
    cwd: str | None
    child: bool


class Line(NamedTuple):
    """A line as far as it is understood; `known` is False for one that is no JSON object or of no known kind."""

    known: bool
    header: Header | None = None
    said: Said | None = None


UNKNOWN = Line(known=False)
NOTHING = Line(known=True)


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


_Content = str | list[_Block | str] | None


class _Message(msgspec.Struct):
    role: str = ""
    content: _Content = None


class _Raw(msgspec.Struct, rename="camel"):
    """Every field that any of the formats is told by; all others are skipped without being built."""

    kind: str = ""
    type: str = ""
    id: str | None = None
    version: object = None
    cwd: str | None = None
    parent_session_id: str | None = None
    message: _Message | None = None
    summary: str | None = None
    uuid: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    role: str = ""
    content: _Content = None


_decode = msgspec.json.Decoder(_Raw, strict=True).decode


def parse(line: bytes) -> Line:
    """What one line says. Never raises."""
    try:
        raw = _decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # A field of a type nobody expects is as strange as a line that is no JSON: it is counted, nothing more.
        return UNKNOWN
    if raw.kind:
        return _seed(raw)
    if raw.type in _CLAUDE:
        return _claude(raw)
    if raw.role:
        return Line(known=True, said=_said(raw.id, raw.role, raw.content))
    # Claude Code keeps records of its own between the turns.
    return NOTHING if raw.type else UNKNOWN


_CLAUDE = frozenset({"user", "assistant", "summary"})
_SEED_SUMMARIES = frozenset({"compaction", "branchSummary"})


def _seed(raw: _Raw) -> Line:
    if raw.kind == "header":
        if raw.version != VERSION:
            return UNKNOWN
        return Line(known=True, header=Header(raw.id, raw.cwd, child=raw.parent_session_id is not None))
    if raw.kind != "entry":
        return UNKNOWN
    if raw.type in _SEED_SUMMARIES:
        return Line(known=True, said=_said(raw.id, "summary", raw.summary))
    if raw.type == "message" and raw.message is not None:
        return Line(known=True, said=_said(raw.id, raw.message.role, raw.message.content))
    return NOTHING


def _claude(raw: _Raw) -> Line:
    header = None if raw.cwd is None else Header(None, raw.cwd, child=False)
    if raw.is_sidechain or raw.is_meta:
        return Line(known=True, header=header)
    if raw.type == "summary":
        return Line(known=True, header=header, said=_said(raw.uuid, "summary", raw.summary))
    message = raw.message or _Message()
    kind = "summary" if raw.is_compact_summary else raw.type
    return Line(known=True, header=header, said=_said(raw.uuid, kind, message.content))


def _said(id_: str | None, kind: str, content: _Content) -> Said | None:
    """The entry of a content; None where nobody said a word."""
    if kind == "user":
        text = without_injected(_words(content))
    elif kind in ("assistant", "summary"):
        text = _words(content)
    else:
        return None
    text = text.strip()
    return Said(id_, _KINDS[kind], text) if text else None


_KINDS: dict[str, Kind] = {"user": "user", "assistant": "assistant", "summary": "summary"}


def _words(content: _Content) -> str:
    """The text of a content, its blocks of other kinds left out."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = (block if isinstance(block, str) else block.text for block in content if _is_text(block))
    return "\n".join(text for text in texts if text)


def _is_text(block: "_Block | str") -> bool:
    return isinstance(block, str) or block.type == "text"


# What hosts put between a person's words: reminders, what a slash command printed, an editor's selection.
_TAGS = (
    "system-reminder|command-name|command-message|local-command-stdout|local-command-stderr|local-command-caveat"
    "|bash-stdout|bash-stderr|user-prompt-submit-hook|ide_opened_file|ide_selection|ide_diagnostics"
)
_OPEN = re.compile(rf"<({_TAGS})>|^<<<(yi-external) ", re.MULTILINE)
_FENCE_END = re.compile(r"^<<<end-yi-external [^\n]*$", re.MULTILINE)


def without_injected(text: str) -> str:
    """A person's message less what was put into it: the host's tagged text, and memd's own block with its fence.

    What never closes is a person's own words. Linear: an end that was looked for in vain is not looked for again.
    """
    kept: list[str] = []
    endless: set[str] = set()
    done = 0
    for opening in _OPEN.finditer(text):
        tag = opening[1] or opening[2]
        if opening.start() < done or tag in endless:
            continue
        end = _end(text, tag, opening.end())
        if end is None:
            endless.add(tag)
            continue
        kept.append(text[done : opening.start()])
        done = end
    return "".join((*kept, text[done:]))


def _end(text: str, tag: str, start: int) -> int | None:
    """Where what a tag opened ends; None when it does not."""
    if tag == "yi-external":
        fence = _FENCE_END.search(text, start)
        return None if fence is None else fence.end()
    closing = f"</{tag}>"
    at = text.find(closing, start)
    return None if at < 0 else at + len(closing)
