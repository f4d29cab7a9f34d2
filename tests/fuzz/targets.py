"""What is fuzzed: each law, what to begin with, and bugs to plant. Law: nothing of memd is imported here.

The program that fuzzes must choose which memd is imported, a sound one or one with a bug in it, before anything is.
"""

from typing import NamedTuple


class Plant(NamedTuple):
    """A bug: in `file` under `memd/`, `sound` (which stands there once) becomes `broken`."""

    file: str
    sound: str
    broken: str


class Target(NamedTuple):
    """A law of `laws`, its rooms, bytes to begin with, words that the inventor may use, and bugs it must find.

    `region` is the class in the room that is the law's, where not all of it is. `least` is the share of branches that
    what was found must go through, in percent; None where it is only told.
    """

    law: str
    rooms: tuple[str, ...]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
    plants: tuple[Plant, ...]
    region: str | None = None
    least: float | None = None


_HASH = b"sha256:" + b"ab" * 32
_RECORD = b'{"at":1,"by":"cli","digest":"%s","hash":"%s","name":"a","op":"save"}\n' % (_HASH, _HASH)


def _request(method: bytes, params: bytes = b"{}", request_id: bytes = b"1") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (request_id, method, params)


TARGETS = {
    "framing": Target(
        law="framing",
        rooms=("server.py",),
        region="Lines",
        least=95.0,
        seeds=(b"\1\2\3\4\5\6\7\x08one\ntwo\n", b"\x10" * 8 + b"\n\n  \nlast"),
        words=(b"\n", b"\n\n", b" ", b"\r\n", b"\0", b"x" * 24, b"x" * 25),
        plants=(
            Plant("server.py", "elif len(line) > REQUEST_MAX:", "elif len(line) >= REQUEST_MAX:"),
            Plant(
                "server.py",
                "        self._buffer.clear()\n        self._searched = 0\n",
                "        self._buffer.clear()\n",
            ),
        ),
    ),
    "envelope": Target(
        law="envelope",
        rooms=("rpc.py",),
        least=95.0,
        seeds=(
            _request(b"echo", b'{"value":1}'),
            _request(b"broken"),
            _request(b"disk"),
            _request(b"disk", b'{"limit":2}'),
            _request(b"group"),
            _request(b"refused", b"{}", b'"a"'),
            _request(b"sized", b'{"limit":9999}', b"null"),
            b"[" + _request(b"echo") + b"," + _request(b"unwritable") + b"," + _request(b"surrogate") + b"]",
            _request(b"memory.search", b'{"cwd":"/","query":"x","limit":0}'),
            _request(b"memory.save", b'{"session":"s","markdown":"x","fields":{"type":"user"},"expect":null}'),
            b'{"jsonrpc":"2.0","method":"echo"}',
        ),
        words=(
            b'"jsonrpc":"2.0"',
            b'"id":',
            b',"id":true',
            b',"id":{}',
            b'"method":',
            b'"params":',
            b'"echo"',
            b'"broken"',
            b'"group"',
            b'"sized"',
            b'"conflict"',
            b'"limit":30000',
            b'"limit":20000,',
            b'"params":[1]',
            b'"params":1',
            b'"kind":"user"',
            b'"kind":"u"',
            b'"cwd":"/"',
            b'"session":"s"',
            b"[[",
            b"{}",
            b"[]",
            b"null",
            b"true",
            b"1e999",
            b"-0",
            b"NaN",
            b'"\\ud800"',
            b"9" * 30,
            b"1.5",
            b"[" * 64,
        ),
        plants=(
            Plant("rpc.py", "if type(request_id) not in _ID_TYPES:", "if not isinstance(request_id, _ID_TYPES):"),
            Plant("rpc.py", "if not 1 <= len(members) <= BATCH_MAX:", "if len(members) > BATCH_MAX:"),
        ),
    ),
    "note": Target(
        law="notes",
        rooms=tuple(
            f"note/{room}.py" for room in ("reading", "values", "json_block", "rendering", "rewriting", "names")
        ),
        least=95.0,
        seeds=(
            b'---\nname: a\ndescription: "b"\ntype: user\nx: 1\n---\n\nbody\n',
            b"---\ndescription: >-\n  folded\n  text\nmetadata:\n  type: project\n---\n# Title\n",
            b'---\n{"name": "a", "metadata": {"type": "user"}, "k y": [1, null]}\n---\nbody',
            b"---\nmetadata: {a: [1, 2], type: 'user'}\ndescription: 'it''s'\n---\n",
            b"---\n  indented: 1\n  and: 2\n---\nx",
            b'---\ndescription: "a\\u00e9\\n\\x41\\ud83d\\ude00 \\\n  b"\nlist:\n- one\n- two\n---\n',
            b'---\n{"name": "a", "x": NaN}\n---\n',
            b"No block at all.md",
            b"a name, longer than is looked at " * 40,
            b"\xe7\x95\x8c" * 90,
        ),
        words=(
            b"---\n",
            b"\n---\n",
            b"  ---\n",
            b"name: ",
            b"description: ",
            b"type: ",
            b"metadata:",
            b"  type: user\n",
            b"user",
            b"|",
            b">+",
            b">-2",
            b"|2 # c",
            b"'",
            b'"',
            b"''",
            b"\\",
            b"\\u",
            b"\\ud800",
            b"\\ud83d\\ude00",
            b"\\U0001f600",
            b"\\U00110000",
            b"\\x41",
            b"\\\n",
            b"{type: user}",
            b"- item\n",
            b"# c\n",
            b"\xef\xbb\xbf",
            b"\r\n",
            b"\r",
            b"\xff",
            b"\xe2\x80\xa8",
            b"{",
            b"}",
            b"[",
            b"]",
            b":",
            b",",
            b"null",
            b"~",
            b"NaN",
            b"1e5",
            b"  ",
            b"\t",
            b".md",
            b"memory",
            b"\xc3\xa9",
            b"J\xcc\x8c",
            b"2024-01-01",
            b"0x1f",
            b"-",
        ),
        plants=(
            Plant("note/values.py", " or 0xD800 <= code <= 0xDFFF:", ":"),
            Plant(
                "note/reading.py",
                'lines[index] = "\'---\'" if rest.rstrip() == "---" else rest',
                "lines[index] = rest",
            ),
        ),
    ),
    "journal": Target(
        law="records",
        rooms=("journal.py",),
        seeds=(
            _RECORD,
            _RECORD + _RECORD.replace(b'"save"', b'"forget"'),
            _RECORD + b"torn",
            _RECORD.replace(b'"by":"cli"', b'"by":3')
            + _RECORD.replace(b'"op":"save"', b'"op":"read","x":[{"y":null}]'),
        ),
        words=(
            _HASH,
            b'"at":',
            b'"by":',
            b'"digest":"',
            b'"hash":"',
            b'"name":"',
            b'"op":"',
            b'"session":"s"',
            b"1.5",
            b'"source_hash":"',
            b"adopt",
            b"edit",
            b"forget",
            b"read",
            b"save",
            b"\n",
            b"{",
            b"}",
            b"\\u0001",
            b"../x",
        ),
        plants=(
            Plant(
                "journal.py", "if given.digest is UNSET or _again.encode(given) != line:", "if given.digest is UNSET:"
            ),
        ),
    ),
    "usage": Target(
        law="usage",
        rooms=("usage.py",),
        seeds=(
            b'{"sessions": 1, "notes": {"one": {"saves": 1, "reads": 2, "last": 3}}}',
            b'{"sessions": 1, "x": 1, "notes": {"one": {"saves": 1, "reads": 2, "last": 3, "y": {}}}}',
        ),
        words=(
            b'"sessions":',
            b'"notes":',
            b'"saves":',
            b'"reads":',
            b'"last":',
            b"-1",
            b"{}",
            b"null",
            b"1.0",
            b"9" * 25,
        ),
        plants=(Plant("usage.py", "msgspec.Meta(ge=0)", "msgspec.Meta(ge=-9)"),),
    ),
    "listing": Target(
        law="listing",
        rooms=("listing.py",),
        seeds=(
            "- [a](a.md) — hook\nmine\n- [b c](b.md) — other ⚠ stale\r\n".encode(),
            b"- [x](y](z.md).md)\n- [](ab.md)\n\xef\xbb\xbf",
        ),
        words=(
            b"- [",
            b"](",
            b".md)",
            b"fresh",
            b"\n",
            b"\r\n",
            b"/",
            b".",
            "—".encode(),
            " ⚠ stale".encode(),
            b"memory",
        ),
        plants=(Plant("listing.py", 'stem != "" and "/" not in stem and', 'stem != "" and'),),
    ),
    "config": Target(
        law="settings",
        rooms=("config.py",),
        seeds=(
            b'save_cap = 3\nsettle_ms = 1\nlock_timeout_s = 1.5\n[claude]\nimport = true\nhome = "~/x"\n',
            b'log_level = "info"\n[search]\nranker = "plain"\n',
            b'history.roots = ["/a"]\nhistory.sources = ["claude"]\nkimi.import = false\nsave_kap = 2\n',
        ),
        words=(
            b"save_cap",
            b"settle_ms",
            b"lock_timeout_s",
            b"log_level",
            b"claude",
            b"import",
            b"home",
            b"kimi",
            b"history",
            b"roots",
            b"sources",
            b"search.ranker",
            b"= true\n",
            b"nan",
            b"inf",
            b"-1",
            b"1e400",
            b'"""',
            b"[[",
            b"{",
            b"a.a.a.",
            b"1979-05-27T07:32:00Z",
            b"\xff",
        ),
        plants=(
            Plant(
                "config.py",
                "if not isinstance(value, int) or isinstance(value, bool) or not",
                "if not isinstance(value, int) or not",
            ),
        ),
    ),
    "words": Target(
        law="words",
        rooms=("secrets.py", "tokens.py"),
        seeds=(
            b"see ghp_0123456789abcdefghij\nand sk-A1b2C3d4E5f6G7h8I9 too",
            b"-----BEGIN RSA PRIVATE KEY-----\nMIIabc0123456789abcdefghijkl\n-----END RSA PRIVATE KEY-----\n",
            b"https://user:pa55word@host/ AKIAIOSFODNN7EXAMPLE glpat-0123456789abcdefghij ",
            b"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4fw",
            "面关 gen-itgc后 배포를 ＡＰＩ café 2.8.3 snake_case か".encode(),
        ),
        words=(
            b"sk-",
            b"ghp_",
            b"github_pat_",
            b"AKIA",
            b"gho_",
            b"glpat-",
            b"xoxb-",
            b"AIza",
            b"hf_",
            b"npm_",
            b"sk_live_",
            b"eyJ",
            b"://",
            b"@",
            b":",
            b"PRIVATE KEY-----",
            b"-----BEGIN ",
            b"-----END ",
            b"[redacted]",
            b"0123456789abcdefghij",
            "́".encode(),
            "数".encode(),
            "か".encode(),
            "한".encode(),
            "é".encode(),
            "Ж".encode(),
            b".",
            b"/",
            b"-",
        ),
        plants=(
            Plant("secrets.py", "        counted = start\n", ""),
            Plant("tokens.py", "if at == end and script != _NONE:", "if at == end:"),
        ),
    ),
}
