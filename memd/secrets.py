"""Key-shaped runs and fences in a text. Law: a kind and a place come out, never the value.

Pure, and linear in the text: every run is looked at once. SPEC section 3.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

import msgspec

FENCE = "<<<yi-external"
MASK = "[redacted]"


class Found(msgspec.Struct, frozen=True):
    """One key-shaped run: its kind, its characters `start` to `end`, the 1-based line it begins on."""

    kind: str
    start: int
    end: int
    line: int


def scan(text: str) -> list[Found]:
    """Every key-shaped run of the text, in order; overlapping ones are told apart by kind. SPEC 3."""
    if not may_hold(text):  # told for half of what it takes to ask for each kind
        return []
    spans = [(start, end, kind) for kind, needle, find in _KINDS if needle in text for start, end in find(text)]
    spans.sort()
    found = []
    line, counted = 1, 0
    for start, end, kind in spans:
        line += text.count("\n", counted, start)
        counted = start
        found.append(Found(kind, start, end, line))
    return found


def may_hold(text: str) -> bool:
    """Whether a text holds what any key-shaped run or a fence has; without it no look at its parts finds one."""
    return any(map(text.__contains__, _NEEDLES if "_" in text else _PLAIN_NEEDLES))


def warn_kinds(text: str) -> list[str]:
    """The kinds that only the bare rule (prefix, edge, digit) sees in the text, each once. SPEC 3."""
    if not any(prefix in text for prefix in _BARE_PREFIXES):
        return []
    refused = {found.start for found in scan(text)}
    kinds = [run[1] for run in _BARE.finditer(text) if run.start() not in refused and _DIGIT.search(run[2])]
    return list(dict.fromkeys(kinds))


def redact(text: str) -> str:
    """The text with each key-shaped run as `[redacted]`; the same text when there is none. SPEC 3."""
    while found := scan(text):  # again, since a mask is an edge for what stood right behind the run
        text = _masked(text, found)
    return text


def _masked(text: str, found: list[Found]) -> str:
    parts = []
    done = 0
    for run in found:
        if run.start >= done:
            parts += [text[done : run.start], MASK]
        done = max(done, run.end)
    parts.append(text[done:])
    return "".join(parts)


# ---------------------------------------------------------------- runs with a prefix

_EDGE = r"(?<![A-Za-z0-9_-])"
_DIGIT = re.compile(r"[0-9]")
_BARE_PREFIXES = ("sk-", "ghp_", "github_pat_", "AKIA")
_BARE = re.compile(_EDGE + r"(sk-|ghp_|github_pat_|AKIA)([A-Za-z0-9_-]++)")
_PART = re.compile(r"[a-z]*|[0-9]{1,8}")
_LABEL = re.compile(r"[a-z0-9]{2,5}")
_LEAST_WORD = 3


def _is_branch(run: str) -> bool:
    """Whether a run is a branch's or a label's name: lower-case words and numbers of at most 8 digits.

    A short label with a digit (`v2`, `k8s`, `py311`) is one too where the words outnumber such labels.
    """
    words = labels = 0
    for part in run.replace("_", "-").split("-"):
        if _PART.fullmatch(part):
            words += part.isalpha() and len(part) >= _LEAST_WORD
        elif _LABEL.fullmatch(part):
            labels += 1
        else:
            return False
    return labels == 0 or words > labels


def _prefixed(prefix: str, characters: str, least: int) -> Callable[[str], Iterator[tuple[int, int]]]:
    """A finder of runs of `characters` after `prefix` at a token edge, a digit and no branch in them."""
    pattern = re.compile(f"{_EDGE}{prefix}([{characters}]{{{least},}}+)")

    def find(text: str) -> Iterator[tuple[int, int]]:
        for run in pattern.finditer(text):
            if _DIGIT.search(run[1]) and not _is_branch(run[1]):
                yield run.span()

    return find


# ---------------------------------------------------------------- private keys, tokens, URLs

_KEY_MARK = re.compile(r"(?:-----BEGIN [A-Z0-9 ]{0,40})?PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# A key that has no END mark: armour headers and lines that are all base64, or long base64 in the line.
_KEY_BODY = re.compile(
    r"(?:\n[ \t>|\"'+]*+(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]*+(?:\n[ \t>|]*+(?=\n))?+"
    r"|[A-Za-z0-9+/]++=*+)[ \t\"',+]*+(?=\n|\Z)"
    r"|(?:\s|\\[nr])*+[A-Za-z0-9+/=]{24,}+)++"
)


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """From each BEGIN mark through its END mark, or through the base64 after it where there is none."""
    ends = [(end.start(), end.end()) for end in _KEY_END.finditer(text)]
    marks = [mark.span() for mark in _KEY_MARK.finditer(text)]
    starts = [start for start, _ in marks if text.startswith("-----BEGIN", start)]
    done = 0
    for start, stop in marks:
        if start < done:
            continue
        after = bisect_left(ends, (stop, 0))
        following = bisect_left(starts, stop)
        limit = starts[following] if following < len(starts) else len(text)
        if text.startswith("-----BEGIN", start) and after < len(ends) and ends[after][0] < limit:
            done = ends[after][1]
        else:
            body = _KEY_BODY.match(text, stop)
            done = body.end() if body else stop
        yield start, done


_JWT = re.compile(_EDGE + r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{16,}+")

_URL_PASSWORD = re.compile(
    r"(?<=[A-Za-z0-9])://[^\s/@:?#\"'<>`]*+:([^\s/?#\"'`]+)@(?!sha[0-9]+:)"  # image:tag@sha256:… is none
)
# What people write where a password goes.
_STAND_IN = re.compile(r"\$\w+|\$\{[^}]*\}|\$\([^)]*\)|<[^>]*>|\{+[^{}]*\}+|%\w+%|:\w+|\*+|[xX]+|\.+|…|\[redacted\]")


def _url_passwords(text: str) -> Iterator[tuple[int, int]]:
    for run in _URL_PASSWORD.finditer(text):
        if not _STAND_IN.fullmatch(run[1]):
            yield run.span(1)


def _jwts(text: str) -> Iterator[tuple[int, int]]:
    return (run.span() for run in _JWT.finditer(text))


# ---------------------------------------------------------------- the kinds

_ALNUM = "A-Za-z0-9"
_TOKEN = "A-Za-z0-9_-"  # noqa: S105 - a character class

# Kind, what a text must hold to be looked through at all, and the finder.
_KINDS: tuple[tuple[str, str, Callable[[str], Iterator[tuple[int, int]]]], ...] = (
    ("private key", "PRIVATE KEY", _private_keys),
    ("sk-", "sk-", _prefixed("sk-", _TOKEN, 16)),
    ("ghp_", "ghp_", _prefixed("ghp_", _ALNUM, 20)),
    ("github_pat_", "github_pat_", _prefixed("github_pat_", "A-Za-z0-9_", 20)),
    ("AKIA", "AKIA", _prefixed("AKIA", _ALNUM, 16)),
    ("gho_", "gho_", _prefixed("gho_", _ALNUM, 20)),
    ("ghu_", "ghu_", _prefixed("ghu_", _ALNUM, 20)),
    ("ghs_", "ghs_", _prefixed("ghs_", _ALNUM, 20)),
    ("ghr_", "ghr_", _prefixed("ghr_", _ALNUM, 20)),
    ("glpat-", "glpat-", _prefixed("glpat-", _TOKEN, 20)),
    ("xox[abprs]-", "xox", _prefixed("xox[abprs]-", _TOKEN, 20)),
    ("AIza", "AIza", _prefixed("AIza", _TOKEN, 20)),
    ("hf_", "hf_", _prefixed("hf_", _ALNUM, 20)),
    ("npm_", "npm_", _prefixed("npm_", _ALNUM, 20)),
    ("sk_live_", "sk_live_", _prefixed("sk_live_", _ALNUM, 20)),
    ("rk_live_", "rk_live_", _prefixed("rk_live_", _ALNUM, 20)),
    ("jwt", "eyJ", _jwts),
    ("url password", "://", _url_passwords),
)
_NEEDLES = (FENCE, *(needle for _, needle, _ in _KINDS))
_PLAIN_NEEDLES = tuple(needle for needle in _NEEDLES if "_" not in needle)  # half of them, for most texts
