"""A key's value as YAML readers give it, and more leniently. Law: reading never fails. Pure. SPEC section 2."""

import re

QUOTES = frozenset("\"'")
_NULLS = frozenset(("~", "null", "Null", "NULL"))
_SCALAR_HEADER = re.compile(r"[|>](?:[+-]?[1-9]?|[1-9][+-])(?:[ \t]+#.*)?\Z")
_DOUBLE = re.compile(r'"((?:[^"\\]++|\\.)*+)"\s*+', re.DOTALL)
_SINGLE = re.compile(r"'((?:[^']++|'')*+)'\s*+")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[\"\\/bfnrt ])"
)
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    " ": " ",
}


def value_of(first: str, rest: str) -> str | None:
    """A key's value as text: `first` is what its line holds, `rest` the lines after. None: an open quote."""
    head = first.strip()
    if head[:1] in {"|", ">"} and _SCALAR_HEADER.match(head):
        return _scalar_block(rest.split("\n")[1:], folded=head[0] == ">")
    if not head:
        lines = [line for line in rest.split("\n") if line.strip() and line[0] != "#"]
        if not lines:
            return ""
        head = lines[0].strip()
        rest = "\n" + "\n".join(lines[1:])
    quote = head[0]
    if quote not in QUOTES:
        text = _fold(head, rest, comments=False) if rest else head
        return "" if text in _NULLS else text
    text = _fold(head, rest, comments=True) if rest else head
    pattern = _DOUBLE if quote == '"' else _SINGLE
    closed = pattern.match(text)
    if closed is None:
        return None
    if closed.end() < len(text):
        return _fold(head, rest, comments=False)  # it closes before its end: a plain string
    inner = closed[1]
    if quote == "'":
        return inner.replace("''", "'")
    return _ESCAPE.sub(_unescape, inner) if "\\" in inner else inner


def _unescape(found: re.Match[str]) -> str:
    escape = found[0]
    kind = escape[1]
    if kind not in "uUx":
        return _ESCAPES[kind]
    if len(escape) == len(r"\ud83d\ude00"):
        pair = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((pair[0] & 0x3FF) << 10) + (pair[1] & 0x3FF))
    digits = escape[2:]
    code = int(digits, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"  # half a pair is no character, and no UTF-8
    return chr(code)


def _fold(head: str, rest: str, *, comments: bool) -> str:
    """The value's lines as YAML folds them: joined by a space, a blank line by a line end.

    In a plain value a comment line ends nothing and says nothing; in a quoted one (`comments`) an
    indented `#` is text, and a backslash before the line end joins without a space.
    """
    parts = [head]
    glue = "" if comments and _continues(head) else " "
    for line in rest.split("\n")[1:]:
        text = line.strip()
        if line[:1] == "#" or (text[:1] == "#" and not comments):
            continue
        if not text:
            glue = "\n"
            continue
        if not glue:
            parts[-1] = parts[-1][:-1]
        parts += [glue, text]
        glue = "" if comments and _continues(text) else " "
    return "".join(parts)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _scalar_block(lines: list[str], *, folded: bool) -> str:
    """The text of a `|` or `>` block. Line ends at its own end are trimmed: no value here keeps them."""
    lines = [line for line in lines if line[:1] != "#"]
    indent = next((len(s) - len(s.lstrip(" \t")) for s in lines if s.strip()), 0)
    texts = [line[indent:] if line[:indent].isspace() else line.lstrip() for line in lines]
    if not folded:
        return "\n".join(texts).strip("\n")
    parts: list[str] = []
    glue = ""
    for text in texts:
        if not text.strip():
            glue = "\n" if parts else ""
            continue
        if text[0] in " \t":
            glue = "\n" if parts else ""
        parts += [glue, text]
        glue = " "
    return "".join(parts)


# A flow map's tokens: space, quoted text, an indicator, plain text, a stray quote.
_FLOW = re.compile(
    r"\s++|\"(?:[^\"\\]++|\\.)*+\"|'(?:[^']++|'')*+'|[\[\]{},:]|[^\[\]{},:\"'\s][^\[\]{},:]*+|[\"']",
    re.DOTALL,
)


def nested_type(head: str, rest: str) -> str:
    """The `type` of a `metadata` value, an indented map or a flow map; "" when it has none."""
    if head.startswith("{"):
        return _flow_type(_fold(head, rest, comments=False))
    indent = None
    found = ""
    for line in rest.split("\n")[1:]:
        text = line.lstrip(" \t")
        if not text or text[0] == "#":
            continue
        if indent is None:
            if not head and text[0] == "{":
                return _flow_type(_fold("", rest, comments=False).strip())
            indent = len(line) - len(text)
        if len(line) - len(text) == indent and text.startswith("type:"):
            found = (value_of(text[len("type:") :], "") or "").strip()
    return found


def _flow_type(text: str) -> str:
    depth = 0
    key: str | None = None
    parts: list[str] = []
    found = ""
    for piece in _FLOW.findall(text):
        if piece in {"{", "["}:
            depth += 1
            if depth == 1:
                continue
        elif piece in {"}", "]"}:
            depth -= 1
        if (depth == 1 and piece == ",") or depth == 0:
            if key == "type":
                found = (value_of("".join(parts), "") or "").strip()
            key, parts = None, []
            if depth == 0:
                break
        elif depth == 1 and piece == ":" and key is None:
            key, parts = (value_of("".join(parts), "") or "").strip(), []
        else:
            parts.append(piece)
    return found
