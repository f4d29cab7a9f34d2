"""What a request may say and what a reply holds, type by type. SPEC sections 7 and 12."""

import typing
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest

from memd import protocol
from memd.note import NoteType, Scope
from memd.protocol import NUMBER_MAX, Params, PlaceParams, Reply, Verb

# -- parameters

HERE = {"cwd": "/x"}

DEFAULTS: dict[type[Params], tuple[dict[str, object], dict[str, object]]] = {
    protocol.SaveParams: ({"markdown": "a"}, {"fields": {}, "expect": msgspec.UNSET}),
    protocol.NameParams: ({"name": "a"}, {"scope": None}),
    protocol.SearchParams: (
        {"query": "a"},
        {"limit": 5, "scope": None, "offset": 0, "ranker": None, "explain": False},
    ),
    protocol.ListParams: (
        {},
        {"scope": None, "type": None, "limit": None, "offset": 0, "bodies": False, "texts": False},
    ),
    protocol.LogParams: ({}, {"name": None, "limit": 50, "since": None, "scope": None, "reads": True}),
    protocol.ShowParams: ({"name": "a"}, {"hash": None, "scope": None}),
    protocol.DiffParams: ({"name": "a"}, {"from_": None, "to": None, "scope": None}),
    protocol.RestoreParams: ({"name": "a", "hash": "b"}, {"scope": None}),
    protocol.RenameParams: ({"name": "a", "to": "b"}, {"scope": None}),
    protocol.MoveParams: ({"name": "a", "scope": "repo"}, {}),
    protocol.ImportParams: ({"dir": "/a"}, {"dry_run": False, "limit": None, "after": None}),
    protocol.ImportKimiParams: ({}, {"scope": None, "dry_run": False}),
    protocol.ImportClaudeParams: ({}, {"scope": None, "dry_run": False, "dir": None}),
    protocol.StoreAdoptParams: ({"key": "a"}, {"dry_run": False}),
    protocol.CheckParams: ({}, {"hints": False}),
    protocol.RebuildParams: ({}, {"dry_run": False}),
    protocol.ReconcileParams: ({}, {"accept": False, "dry_run": False}),
    protocol.HistorySearchParams: ({"query": "a"}, {"limit": 8, "offset": 0, "ranker": None}),
    protocol.HistoryReadParams: ({"url": "a"}, {}),
    protocol.FocusParams: ({"prompt": "a"}, {"dialect": "python", "abstain": True, "ranker": None}),
    protocol.IndexParams: ({}, {"max_bytes": 8_192}),
    protocol.PlaceParams: ({}, {}),
    protocol.HelloParams: ({}, {"client": None, "protocol": 1}),
    protocol.Params: ({}, {}),
}
"""The least that each may be given beside its place, and what the rest then is."""


def place_of(kind: type[Params]) -> dict[str, object]:
    return dict(HERE) if issubclass(kind, PlaceParams) else {}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_what_is_not_given_has_its_default(kind: type[Params]) -> None:
    least, defaults = DEFAULTS[kind]
    params = msgspec.convert({**place_of(kind), **least}, kind)
    for name, value in {**least, **defaults}.items():
        assert getattr(params, name) == value
    named = {*least, *defaults, *(("session", "cwd") if issubclass(kind, PlaceParams) else ())}
    assert set(kind.__struct_fields__) == named


@pytest.mark.parametrize("kind", DEFAULTS)
def test_what_is_required_is_required_and_nothing_else_is_known(kind: type[Params]) -> None:
    least, _ = DEFAULTS[kind]
    for name in least:
        without = {key: value for key, value in least.items() if key != name}
        with pytest.raises(msgspec.ValidationError, match=f"missing required field `{name}`"):
            msgspec.convert({**place_of(kind), **without}, kind)
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        msgspec.convert({**place_of(kind), **least, "colour": 1}, kind)


@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_place_is_exactly_one(kind: type[Params]) -> None:
    least, _ = DEFAULTS[kind]
    if not issubclass(kind, PlaceParams):
        for place in ("session", "cwd"):
            with pytest.raises(msgspec.ValidationError, match="unknown field"):
                msgspec.convert({**least, place: "x"}, kind)
        return
    for places in ({}, {"session": None, "cwd": None}, {"session": "s", "cwd": "/x"}):
        with pytest.raises(msgspec.ValidationError, match="exactly one of `session` and `cwd`"):
            msgspec.convert({**least, **places}, kind)
    assert msgspec.convert({**least, "session": "s", "cwd": None}, kind).session == "s"


@pytest.mark.parametrize("kind", DEFAULTS)
def test_parameters_do_not_change(kind: type[Params]) -> None:
    params = msgspec.convert({**place_of(kind), **DEFAULTS[kind][0]}, kind)
    for name in kind.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(params, name, None)


LISTS = [protocol.SearchParams, protocol.ListParams]
LIMITED: list[tuple[type[Params], dict[str, object]]] = [
    (protocol.SearchParams, {"query": "a"}),
    (protocol.ListParams, {}),
    (protocol.LogParams, {}),
]


@pytest.mark.parametrize(("kind", "least"), LIMITED)
@pytest.mark.parametrize("limit", [0, -1, -(10**30), NUMBER_MAX + 1, 10**30, True, 1.5, "5", [5]])
def test_a_limit_out_of_range_is_refused(kind: type[Params], least: dict[str, object], limit: object) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`\$\.limit`"):
        msgspec.convert({**HERE, **least, "limit": limit}, kind)


@pytest.mark.parametrize(("kind", "least"), LIMITED)
@pytest.mark.parametrize("limit", [1, NUMBER_MAX])
def test_a_limit_in_range_is_taken(kind: type[Any], least: dict[str, object], limit: int) -> None:
    assert msgspec.convert({**HERE, **least, "limit": limit}, kind).limit == limit


@pytest.mark.parametrize("kind", LISTS)
def test_an_offset_is_0_or_more(kind: type[Any]) -> None:
    least = DEFAULTS[kind][0]
    for offset in (-1, -(10**30), NUMBER_MAX + 1, 1.5, False, None):
        with pytest.raises(msgspec.ValidationError, match=r"`\$\.offset`"):
            msgspec.convert({**HERE, **least, "offset": offset}, kind)
    assert msgspec.convert({**HERE, **least, "offset": NUMBER_MAX}, kind).offset == NUMBER_MAX


def test_a_session_id_is_one_of_spec_8() -> None:
    for good in ("a", "A9", "a-b_c.d", "x" * 128):
        assert msgspec.convert({"session": good}, protocol.SessionEndParams).session == good
        assert msgspec.convert({"session": good}, PlaceParams).session == good
    for bad in ("", "-a", "a-", ".a", "a/b", "a b", "é", "a\n", "x" * 129):
        for kind in (protocol.SessionEndParams, PlaceParams):
            with pytest.raises(msgspec.ValidationError, match=r"`\$\.session`"):
                msgspec.convert({"session": bad}, kind)


def test_expect_null_is_not_expect_left_out() -> None:
    save = {**HERE, "markdown": "a"}
    assert msgspec.convert(save, protocol.SaveParams).expect is msgspec.UNSET
    assert msgspec.convert({**save, "expect": None}, protocol.SaveParams).expect is None
    assert msgspec.convert({**save, "expect": "exists"}, protocol.SaveParams).expect == "exists"


def test_fields_are_an_object_of_anything() -> None:
    save = {**HERE, "markdown": "a"}
    given = {"type": "user", "tags": [1, {"a": None}]}
    assert msgspec.convert({**save, "fields": given}, protocol.SaveParams).fields == given
    others: tuple[object, ...] = (None, [], "a", 1)
    for other in others:
        with pytest.raises(msgspec.ValidationError, match=r"`\$\.fields`"):
            msgspec.convert({**save, "fields": other}, protocol.SaveParams)


def test_two_requests_do_not_share_their_fields() -> None:
    one, two = (msgspec.convert({**HERE, "markdown": "a"}, protocol.SaveParams) for _ in range(2))
    one.fields["x"] = 1
    assert two.fields == {}


def test_words_are_of_the_house() -> None:
    listed = msgspec.convert({**HERE, "scope": "global", "type": "user"}, protocol.ListParams)
    assert (listed.scope, listed.type) == (Scope.GLOBAL, NoteType.USER)
    for name, word in (("scope", "Global"), ("scope", ""), ("type", "users")):
        with pytest.raises(msgspec.ValidationError, match=rf"`\$\.{name}`"):
            msgspec.convert({**HERE, name: word}, protocol.ListParams)


@pytest.mark.parametrize("since", [0, 1_700_000_000, 1.5])
def test_since_is_a_number_of_seconds(since: float) -> None:
    assert msgspec.convert({**HERE, "since": since}, protocol.LogParams).since == since


# -- replies

FIELDS: dict[type[Reply], tuple[str, str]] = {
    protocol.Pointer: ("op name scope hash", ""),
    protocol.SaveReply: (
        "name description type scope updated hash warnings pointer",
        "saved saves_left redacted",
    ),
    protocol.ReadReply: ("name description type scope text hash warnings", "pointer redacted"),
    protocol.Hit: ("name description scope", "redacted score explain"),
    protocol.Gave: ("word kind field score", "form"),
    protocol.SearchReply: ("hits total", "notice"),
    protocol.Receipt: ("versions bytes left", ""),
    protocol.ForgetReply: ("name scope receipt pointer", ""),
    protocol.NoteRow: (
        "name scope type description hash saves reads last unparsed shadowed",
        "body markdown redacted",
    ),
    protocol.ListReply: ("notes total", "notice"),
    protocol.LogRecord: ("at op name hash digest scope", "session by source_hash"),
    protocol.LogReply: ("records total", "notice"),
    protocol.ShowReply: ("name scope hash markdown current", "redacted"),
    protocol.DiffReply: ("name scope from to diff", "redacted"),
    protocol.RestoreReply: ("name description scope hash pointer", "redacted"),
    protocol.RenameReply: ("name scope hash was was_scope pointer", ""),
    protocol.Skipped: ("file reason", ""),
    protocol.ImportReply: ("imported updated skipped total", "next"),
    protocol.StoreRow: ("key scope notes origin_exists current", ""),
    protocol.StoreListReply: ("stores", ""),
    protocol.StoreAdoptReply: ("adopted renamed identical left origin_exists", ""),
    protocol.DiscoverReply: ("openrpc info methods components", ""),
    protocol.SubscribeReply: ("subscribed", ""),
    protocol.Telemetry: ("", "scope slug droppedCount"),
    protocol.Activity: ("event line telemetry", "session scope saved pointer"),
    protocol.FocusNote: ("name scope type score shown cut", ""),
    protocol.FocusReply: ("text fenced notes total budget frozen", "redacted"),
    protocol.IndexReply: ("text fenced dropped", "redacted"),
    protocol.SessionStartReply: ("lines saves_left", "block"),
    protocol.SessionUpdateReply: ("read_only", ""),
    protocol.SessionEndReply: ("ended", ""),
    protocol.HistoryHit: ("session entryId type snippet url", "cut redacted"),
    protocol.HistorySearchReply: ("hits total", "notice"),
    protocol.HistoryReadReply: ("session entryId type text url", "redacted"),
    protocol.HistoryProgress: ("read transcripts skipped", ""),
    protocol.ImportProgramReply: (
        "imported updated skipped found stale conflicts ambiguous unparsed lines",
        "",
    ),
    protocol.StoreStats: (
        "sessions notes saves reads saves_per_session reads_per_session unparsed",
        "",
    ),
    protocol.StatsReply: ("repo global", ""),
    protocol.Finding: ("kind scope reason", "name file line"),
    protocol.CheckReply: ("ok findings", "hints"),
    protocol.Hint: ("kind scope name reason", ""),
    protocol.StoreRebuild: ("live restored forgotten differ missing broken_line", ""),
    protocol.RebuildReply: ("ok repo global", ""),
    protocol.StoreReconcile: ("adopted edited forgotten suspended", ""),
    protocol.ReconcileReply: ("repo global", ""),
    protocol.HelloReply: ("version protocol_min protocol_max capabilities pid home", ""),
    protocol.Health: ("kind reason", ""),
    protocol.StatusReply: (
        "version pid uptime_s stores watching last_event_s last_scan_s connections findings history",
        "",
    ),
    protocol.StopReply: ("stopping", ""),
}
"""SPEC 7's fields of each reply: those always written, and those that come where they are known."""

_VALUES: dict[object, object] = {
    str: "a",
    int: 0,
    float: 0.0,
    bool: False,
    Scope: Scope.REPO,
    NoteType: NoteType.USER,
}


def value_of(hint: object, *, some: bool) -> object:
    """The emptiest value of a type, or one that is not its default."""
    if hint is bool:
        return some
    if hint in _VALUES:
        return _VALUES[hint]
    if isinstance(hint, type) and issubclass(hint, Reply):
        return reply_of(hint, some=some)
    origin = get_origin(hint)
    if origin is tuple and some:
        return (value_of(get_args(hint)[0], some=some),)
    if origin is tuple or origin is list or origin is dict:
        return origin()
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    assert isinstance(hint, UnionType), hint
    choices = [choice for choice in get_args(hint) if choice is not msgspec.UnsetType]
    return value_of(choices[0], some=some) if some else None


def reply_of(kind: type[Reply], *, some: bool) -> Reply:
    """A reply of a kind with every field given if `some`, else with the required ones as empty as may be."""
    hints = typing.get_type_hints(kind)
    given = {
        field.name: value_of(hints[field.name], some=some)
        for field in msgspec.structs.fields(kind)
        if some or field.required
    }
    return kind(**given)


def keys(reply: Reply) -> set[str]:
    return set(msgspec.json.decode(msgspec.json.encode(reply)))


def test_every_reply_is_in_the_table() -> None:
    replies = {kind for kind in vars(protocol).values() if isinstance(kind, type) and issubclass(kind, Reply)}
    assert replies - {Reply} == set(FIELDS)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_reply_writes_what_is_required_and_leaves_out_what_is_unknown(kind: type[Reply]) -> None:
    always, known = FIELDS[kind]
    assert keys(reply_of(kind, some=False)) == set(always.split())
    assert keys(reply_of(kind, some=True)) == {*always.split(), *known.split()}


def test_no_cap_is_written_and_no_session_is_not() -> None:
    saved = msgspec.structs.replace(reply_of(protocol.SaveReply, some=False), saved=1, saves_left=None)
    written = msgspec.json.decode(msgspec.json.encode(saved))
    assert (written["saved"], written["saves_left"]) == (1, None)


# -- the table of verbs


async def _run(_call: object, params: Any) -> Any:
    return params


def test_a_verb_s_place_is_its_parameters_place() -> None:
    assert Verb("a.b", protocol.SearchParams, protocol.SearchReply, _run).place
    assert not Verb("a.b", protocol.HelloParams, protocol.HelloReply, _run).place
