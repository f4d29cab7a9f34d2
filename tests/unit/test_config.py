"""The config file: every key, every bound, and that no file keeps the daemon from starting."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memd import config
from memd.config import Config, load, parse

WHOLE = b"""
save_cap = 5
settle_ms = 50
lock_timeout_s = 0.5
log_level = "debug"

[claude]
import = false
home = "/srv/claude"

[kimi]
import = true

[search]
ranker = "plain"

[history]
roots = ["/srv/one", "~/two"]
sources = ["claude"]
"""


def test_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    assert parse(WHOLE) == Config(
        save_cap=5,
        settle_ms=50,
        lock_timeout_s=0.5,
        log_level="debug",
        claude_import=False,
        claude_home=Path("/srv/claude"),
        kimi_import=True,
        search_ranker="plain",
        history_roots=(Path("/srv/one"), Path("/home/dev/two")),
        history_sources=("claude",),
    )


def test_every_key_has_a_field() -> None:
    fields = set(Config.__struct_fields__) - {"findings", "sound"}
    assert {key.replace(".", "_") for key in config.KEYS} == fields


@pytest.mark.parametrize("raw", [b"", b"\n# nothing\n", b"\xef\xbb\xbf# a BOM\r\n", b"[claude]\n[history]\n"])
def test_what_is_not_given_is_its_default(raw: bytes) -> None:
    assert parse(raw) == Config()


def test_defaults() -> None:
    default = Config()
    assert (default.claude_import, default.kimi_import, default.save_cap) == (True, False, 3)
    assert (default.settle_ms, default.lock_timeout_s, default.search_ranker) == (2000, 10.0, "rich")
    assert default.sound


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("save_cap = 0", "save_cap", 0),
        ("settle_ms = 60000", "settle_ms", 60_000),
        ("settle_ms = 0", "settle_ms", 0),
        ("lock_timeout_s = 1", "lock_timeout_s", 1.0),
        ("lock_timeout_s = 0.0", "lock_timeout_s", 0.0),
        ('log_level = "error"', "log_level", "error"),
        ("history.sources = []", "history_sources", ()),
        ("claude = {import = false}", "claude_import", False),
        ('claude.home = "~"', "claude_home", Path("/home/dev")),
    ],
)
def test_values(line: str, field: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    got = parse(line.encode())
    assert got == msgspec.structs.replace(Config(), **{field: value})
    assert type(getattr(got, field)) is type(value) or isinstance(value, Path)


WRONG = [
    ("save_cap = -1", "save_cap"),
    ("save_cap = 1.0", "save_cap"),
    ("save_cap = true", "save_cap"),
    ('save_cap = "3"', "save_cap"),
    ("save_cap = 1000001", "save_cap"),
    ("save_cap = {of = 3}", "save_cap"),
    ("settle_ms = -1", "settle_ms"),
    ("settle_ms = 60001", "settle_ms"),
    ("lock_timeout_s = -0.1", "lock_timeout_s"),
    ("lock_timeout_s = nan", "lock_timeout_s"),
    ("lock_timeout_s = inf", "lock_timeout_s"),
    ("lock_timeout_s = true", "lock_timeout_s"),
    ('lock_timeout_s = "1"', "lock_timeout_s"),
    ("lock_timeout_s = 3600.5", "lock_timeout_s"),
    ('log_level = "loud"', "log_level"),
    ("log_level = 1", "log_level"),
    ("claude.import = 1", "claude.import"),
    ('claude.import = "true"', "claude.import"),
    ('kimi.import = "yes"', "kimi.import"),
    ('claude.home = "relative"', "claude.home"),
    ('claude.home = ""', "claude.home"),
    ('claude.home = "/a\\u0000"', "claude.home"),
    ("claude.home = 7", "claude.home"),
    ('claude.home = "~nobody-of-that-name/x"', "claude.home"),
    ('search.ranker = "best"', "search.ranker"),
    ('history.roots = "/"', "history.roots"),
    ('history.roots = ["srv"]', "history.roots"),
    ('history.sources = ["claude", "mail"]', "history.sources"),
    ("history.sources = [1]", "history.sources"),
    ("claude = true", "claude"),
    ("history = []", "history"),
]


@pytest.mark.parametrize(("line", "key"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_value_gives_defaults_and_no_imports(line: str, key: str) -> None:
    got = parse(b"kimi.import = true\n" + line.encode() if "kimi" not in line else line.encode())
    assert got == Config(claude_import=False, kimi_import=False, sound=False, findings=got.findings)
    assert len(got.findings) == 1
    assert got.findings[0].startswith(f"config: {key} must be ")


def test_every_wrong_key_is_named() -> None:
    got = parse(b"save_cap = -1\nsettle_ms = -1\nsave_kap = 1")
    assert [finding.split()[1] for finding in got.findings] == ["save_cap", "settle_ms", "unknown"]
    assert not got.sound


BROKEN: dict[str, tuple[bytes, str]] = {
    "no value": (b"save_cap =\nx = 1", "line 1"),
    "no key": (b"save_cap = 1\n\n= 1", "line 3"),
    "not TOML": (b"{}", "line 1"),
    "a key twice": (b"save_cap = 1\nsave_cap = 2\n#", "line 2"),
    "not UTF-8": (b"save_cap = 1\n# \xff", "line 2"),
    "NUL": (b"\0" * 64, "line 1"),
    "nested too deeply": (b"a = " + b"[" * 100_000, "deeply"),
    "a dotted key too deep": (b"x = 1\n" + b"a." * 5000 + b"a = 1", "line 2"),
    "a table too deep": (b"[" + b"a." * 1000 + b"a]", "line 1"),
    "an inline table too deep": (b"x = {" + b"a." * 1000 + b"a = 1}", "line 1"),
    "a key twice that is long": (b"x = {" + b"k" * 9000 + b" = 1, " + b"k" * 9000 + b" = 2}", "(at line 1"),
    "a number too long": (b"save_cap = " + b"9" * 5000, "digits"),
}


@pytest.mark.parametrize(("raw", "where"), BROKEN.values(), ids=BROKEN.keys())
def test_what_does_not_parse_gives_defaults_and_no_imports(raw: bytes, where: str) -> None:
    got = parse(raw)
    assert got == Config(claude_import=False, kimi_import=False, sound=False, findings=got.findings)
    assert len(got.findings) == 1
    assert where in got.findings[0]
    assert len(got.findings[0]) < 300


@pytest.mark.parametrize(
    ("line", "shown", "nearest"),
    [
        ("save_kap = 1", "save_kap", "save_cap"),
        ("saveCap = 1", "saveCap", "save_cap"),
        ("claude.imprt = 1", "claude.imprt", "claude.import"),
        ("claud.home = 1", "claud.home", "claude.home"),
        ("lock_timeout = 1", "lock_timeout", "lock_timeout_s"),
        ("history.source = []", "history.source", "history.sources"),
        ("settle = {}", "settle", "settle_ms"),
        ('"save\\u001bcap" = 1', r"'save\x1bcap'", "save_cap"),
    ],
)
def test_an_unknown_key_warns_and_names_the_nearest(line: str, shown: str, nearest: str) -> None:
    got = parse(f"log_level = 'error'\n{line}".encode())
    assert got == Config(log_level="error", findings=got.findings)
    assert got.findings == (f"config: unknown key {shown}; the nearest known one is {nearest}",)


def test_a_file_of_unknown_keys_is_named_not_listed() -> None:
    got = parse(b"".join(b"key_%d = 1\n" % number for number in range(3000)))
    assert len(got.findings) == 21
    assert got.findings[-1] == "config: 2980 more unknown keys"
    assert len(parse(b"".join(b"key_%d = 1\n" % number for number in range(20))).findings) == 20
    long = parse(b"k" * 100_000 + b" = 1")
    assert len(long.findings[0]) < 200


# The file


def test_a_missing_file_says_nothing(tmp_path: Path) -> None:
    assert load(tmp_path / "config.toml") == Config()
    (tmp_path / "file").write_bytes(b"")
    assert load(tmp_path / "file" / "config.toml") == Config()


def test_a_file_is_read_and_a_link_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"save_cap = 9")
    (tmp_path / "config.toml").symlink_to(tmp_path / "real")
    assert load(tmp_path / "config.toml") == Config(save_cap=9)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path)


def huge(path: Path) -> None:
    path.write_bytes(b"#" * (config.MAX_FILE + 1))


@pytest.mark.parametrize("make", [fifo, directory, loop, huge])
def test_a_file_that_does_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "config.toml")
    got = load(tmp_path / "config.toml")
    assert got == Config(claude_import=False, kimi_import=False, sound=False, findings=got.findings)
    assert got.findings[0].startswith("config: does not read: ")
    assert str(tmp_path) not in got.findings[0]


def test_the_largest_file_reads(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"#" * config.MAX_FILE)
    assert load(tmp_path / "config.toml") == Config()
