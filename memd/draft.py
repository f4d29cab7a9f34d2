"""The pure decision of a save. Law: a text becomes a Draft or one refusal, and no message holds its words.

What the disk decides (twins, a derived name that is taken, the session's cap) is the store's. SPEC section 3.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from memd import secrets
from memd.errors import Refused
from memd.note import (
    MAX_BODY,
    MAX_FILE,
    MAX_HOOK,
    RESERVED,
    Note,
    NoteType,
    Reading,
    Scope,
    derived_slug,
    entry_value,
    extra_key,
    first_line,
    is_open,
    parse,
    plain_or_quoted,
    read,
    render,
    slug,
)

PLACEHOLDER = "the situation, then the rule, one line"
KNOWN = ("name", "description", "type", "scope")

_TYPES = tuple(kind.value for kind in NoteType)
_SCOPES = tuple(scope.value for scope in Scope)
_FIELD_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_WORD = re.compile(r"[A-Za-z]{1,24}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_EDITS = 2


class Draft(msgspec.Struct, frozen=True):
    """A note that may be saved, before it has met a store.

    `given` is the name as typed, None when it was `derived` from the description; `slug` is the slug of
    either. `extra` holds the unknown keys the text gave, as `Note.extra`. `masked`: it holds `[redacted]`. `text` is
    what it becomes under the name as typed or derived where no older text adds keys to it.
    """

    given: str | None
    slug: str
    description: str
    type: NoteType
    scope: Scope
    body: str
    extra: tuple[str, ...]
    warnings: tuple[str, ...]
    masked: bool
    text: bytes

    @property
    def derived(self) -> bool:
        """Whether the name comes from the description."""
        return self.given is None


def draft(markdown: str, fields: Mapping[str, object]) -> Draft:
    """The draft of a note's text with `fields` laid over its block. SPEC 3.

    Raises `Refused`, its field the first of: text (not UTF-8), fields, frontmatter, description, type,
    scope, name, body, text (a fence or something key-shaped).
    """
    overlay = _overlay(fields)
    _check_characters(markdown, overlay)
    reading = read(markdown)
    if reading.trouble is not None:
        raise Refused(
            "frontmatter",
            f"the frontmatter does not parse, line {reading.trouble.line}: {reading.trouble.reason}; "
            "close it, or put the value in double quotes",
            bound="a block that parses",
            got=f"line {reading.trouble.line}",
        )
    warnings: list[str] = []
    if reading.json:
        warnings.append("the frontmatter is JSON; it was saved as `key: value` lines")
    description = _description(overlay.get("description", reading.description), reading, warnings)
    kind = _type(overlay.get("type", reading.type))
    scope = _scope(overlay.get("scope"), reading)
    given, name = _name(overlay.get("name"), reading.name, description)
    size = len(reading.body.encode())
    if size > MAX_BODY:
        raise Refused(
            "body",
            f"the body is {size} bytes, at most {MAX_BODY} are kept; "
            "cut it to the fact, or split it into several notes",
            bound=MAX_BODY,
            got=size,
        )
    extra = _extra(reading.extra, overlay)
    warnings += _near_keys(extra)
    text = render(given or name, description, kind, extra, reading.body)
    made = text.decode()
    became = made, description, given or ""
    if secrets.may_hold("\n".join((markdown, *_pairs(overlay), *became))):
        _check_text(markdown, overlay, became)
        warnings += _bare_warnings((markdown, *_pairs(overlay), made))
    masked = any(secrets.MASK in each for each in (made, description))
    return Draft(given, name, description, kind, scope, reading.body, extra, tuple(warnings), masked, text)


def compose(draft: Draft, name: str, old: bytes | None, old_extra: tuple[str, ...] = ()) -> tuple[Note, bytes]:
    """The note a draft becomes under the file stem `name`, and its canonical bytes. SPEC 2 and 3.

    `old` is the text it replaces, whose unknown keys stay unless the draft gives them; where these are known already,
    as `old_extra`, and the draft holds no mask, they do instead of it. Raises `Refused`
    (text) when the draft holds the mask of a run that `old` holds, or the file would pass 1 MiB.
    """
    extra = draft.extra
    if old is not None:
        if draft.masked and secrets.scan(old.decode(errors="replace")):
            raise Refused(
                "text",
                f"the text holds {secrets.MASK} where the saved note holds what that stands for; "
                "read the note's file, or leave that line out",
                bound=f"no {secrets.MASK}",
                got=secrets.MASK,
            )
        old_extra = parse(name, old).extra
    if old_extra:
        extra = _merged(extra, old_extra)
    is_as_drafted = name == (draft.given or draft.slug) and extra == draft.extra
    made = draft.text if is_as_drafted else render(name, draft.description, draft.type, extra, draft.body)
    if len(made) > MAX_FILE:
        raise Refused(
            "text",
            f"the note would be {len(made)} bytes, at most {MAX_FILE} are kept; drop some of its keys",
            bound=MAX_FILE,
            got=len(made),
        )
    return parse(name, made), made


def _merged(new: tuple[str, ...], old: tuple[str, ...]) -> tuple[str, ...]:
    """The draft's entries, then the old file's that it neither gives nor repeats."""
    given = {extra_key(entry) for entry in new} - {""} | {"scope"}
    lines = set(new)
    kept = (entry for entry in old if extra_key(entry) not in given and entry not in lines and not is_open(entry))
    return (*new, *kept)


# ---------------------------------------------------------------- the fields


def _overlay(fields: Mapping[str, object]) -> dict[str, str]:
    overlay: dict[str, str] = {}
    for key, value in fields.items():
        if not _FIELD_KEY.fullmatch(key):
            raise Refused(
                "fields",
                "a field's name may hold only letters, digits, `_` and `-` of ASCII; rename it",
                bound="[A-Za-z0-9_-]+",
            )
        if not isinstance(value, str):
            raise Refused(
                "fields",
                "a field's value is not text; give it as a string",
                bound="text",
                got=type(value).__name__,
            )
        overlay[key] = value
    return overlay


def _check_characters(markdown: str, overlay: Mapping[str, str]) -> None:
    texts = (markdown, *overlay.values())
    if any(not text.isascii() and _SURROGATE.search(text) for text in texts):
        raise Refused(
            "text",
            "the text holds half of a surrogate pair, which no file can hold; send whole characters",
            bound="UTF-8",
            got="surrogate",
        )


def _description(value: str, reading: Reading, warnings: list[str]) -> str:
    description = value.strip()
    if not description:
        description = first_line(reading.body)
        if not description:
            raise Refused(
                "description",
                f"the description is missing; give one line of at most {MAX_HOOK} characters: "
                "the situation, then the rule",
                bound=MAX_HOOK,
                got=0,
            )
        warnings.append("the description is missing; the first line of the body was taken for it")
    lines = len(_LINE_END.split(description))
    if lines > 1:
        raise Refused(
            "description",
            f"the description has {lines} lines, at most 1 is kept; put the rest into the body",
            bound=1,
            got=lines,
        )
    if description == PLACEHOLDER:
        raise Refused(
            "description",
            "the description is the template's placeholder; write the fact in one line of at most "
            f"{MAX_HOOK} characters",
            bound=MAX_HOOK,
            got="placeholder",
        )
    if len(description) > MAX_HOOK:
        raise Refused(
            "description",
            f"the description has {len(description)} characters, at most {MAX_HOOK} are kept; "
            "say it shorter and put the rest into the body",
            bound=MAX_HOOK,
            got=len(description),
        )
    return description


def _type(value: str) -> NoteType:
    kind = value.strip()
    if kind not in _TYPES:
        state = "not one of" if kind else "missing; give one of"
        raise Refused(
            "type",
            f"the type is {state} {', '.join(_TYPES)}" + ("; give one of them" if kind else ""),
            bound=list(_TYPES),
            got=_word(kind),
        )
    return NoteType(kind)


def _scope(overlaid: str | None, reading: Reading) -> Scope:
    """Where the note goes; of a key given twice the last counts, and an empty one is none."""
    value = overlaid
    if value is None:
        values = [entry_value(entry) for entry in reading.extra if extra_key(entry) == "scope"]
        value = (values[-1] if values else "") or Scope.REPO
    if value.strip() not in _SCOPES:
        raise Refused(
            "scope",
            f"the scope is not one of {', '.join(_SCOPES)}; give one of them or leave it out",
            bound=list(_SCOPES),
            got=_word(value.strip()),
        )
    return Scope(value.strip())


def _name(overlaid: str | None, read_name: str, description: str) -> tuple[str | None, str]:
    """The name as given, or None, and its slug. An empty name in a block is none, one laid over is one."""
    given = overlaid.strip() if overlaid is not None else (read_name or None)
    name = derived_slug(description) if given is None else slug(given)
    if not name:
        raise Refused(
            "name",
            "nothing is left of the name but letters, digits and combining marks; give another name",
            bound="a letter or digit",
        )
    if name == RESERVED:
        raise Refused(
            "name",
            f"the name `{RESERVED}` is reserved for the index; give another name",
            bound=f"not {RESERVED}",
        )
    return given, name


def _word(value: str) -> str | None:
    """A value that may be shown: one short word of letters, which is no key."""
    return value if _PLAIN_WORD.fullmatch(value) else None


# ---------------------------------------------------------------- unknown keys


def _extra(entries: tuple[str, ...], overlay: Mapping[str, str]) -> tuple[str, ...]:
    """The text's unknown keys, each that is laid over replaced where it first stood, new ones at the end."""
    laid = {key: f"{key}: {plain_or_quoted(value)}" for key, value in overlay.items() if key not in KNOWN}
    result: list[str] = []
    done: set[str] = set()
    for entry in entries:
        key = extra_key(entry)
        if key == "scope" or key in done:
            continue
        if key in laid:
            done.add(key)
            result.append(laid[key])
        else:
            result.append(entry)
    result += [entry for key, entry in laid.items() if key not in done]
    return tuple(result)


def _near_keys(extra: tuple[str, ...]) -> Iterator[str]:
    for key in dict.fromkeys(map(extra_key, extra)):
        near = next((known for known in KNOWN if key and _within(key, known, _EDITS)), None)
        if near is not None:
            yield f"the key `{key}` is close to `{near}`; it was kept as a key of its own"


def _within(one: str, other: str, edits: int) -> bool:
    """Whether at most so many insertions, deletions and replacements turn one word into the other."""
    if abs(len(one) - len(other)) > edits:
        return False
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1] <= edits


# ---------------------------------------------------------------- what the text must not hold


def _pairs(overlay: Mapping[str, str]) -> list[str]:
    return [f"{key} {value}" for key, value in overlay.items()]


def _check_text(markdown: str, overlay: Mapping[str, str], made: Iterable[str]) -> None:
    """Refuses a fence or a key-shaped run in the text, in a field, or in what either becomes.

    The last since an escape (`\\u0073k-`) hides one in the text that the file would hold.
    """
    held = _held(markdown)
    if held is not None:
        raise _held_refusal(held[0], f"line {held[1]}")
    for key, value in overlay.items():
        held = _held(f"{key} {value}")
        if held is not None:
            raise _held_refusal(held[0], f"the field {key}" if key in KNOWN else "a field")
    for text in made:
        held = _held(text)
        if held is not None:
            raise _held_refusal(held[0], "an escaped value")


def _held(text: str) -> tuple[str, int] | None:
    """The kind and the line of the first thing a saved text must not hold."""
    fence = text.find(secrets.FENCE)
    if fence >= 0:
        return "fence", text.count("\n", 0, fence) + 1
    runs = secrets.scan(text)
    return (runs[0].kind, runs[0].line) if runs else None


def _held_refusal(kind: str, place: str) -> Refused:
    if kind == "fence":
        return Refused(
            "text",
            f"the text holds a fence ({secrets.FENCE}) in {place}; "
            "a recalled block is not a fact: save the fact in your own words",
            bound=f"no {secrets.FENCE}",
            got=kind,
        )
    return Refused(
        "text",
        f"the text holds something key-shaped ({kind}) in {place}; "
        "keys are never kept: say where the key is found instead",
        bound="nothing key-shaped",
        got=kind,
    )


def _bare_warnings(texts: Iterable[str]) -> list[str]:
    kinds = dict.fromkeys(kind for text in texts for kind in secrets.warn_kinds(text))
    return [
        f"the text holds a word that begins like a key ({kind}); it was saved, see that it is none" for kind in kinds
    ]
