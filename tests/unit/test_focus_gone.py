"""Truth: planted gone paths are marked, and nothing else ever is. Row 8 of the field report."""

import pytest

from memd.focus.gone import gone_paths

ROOTS = frozenset({"src", "docs", "memd", "scripts", ".github", "app", "文档"})
THERE = frozenset(
    {
        "src/main.py",
        "src",
        "docs/my notes.md",
        "docs/a, b.md",
        "docs/订单.md",
        "src/it's/x.py",
        "src/a(b).py",
        "memd/a:b",
        "app/[id]/page.tsx",
        "scripts/run.sh",
        "src/old.",
    }
)


def gone(text: str) -> list[str]:
    return gone_paths(text, ROOTS, THERE.__contains__)


PLANTED = [
    ("`src/gone.py`", "src/gone.py"),
    ("see src/gone.py.", "src/gone.py"),
    ("(docs/gone.md)", "docs/gone.md"),
    ("[link](docs/gone.md)", "docs/gone.md"),
    ("src/gone.py:12:5 fails", "src/gone.py"),
    ("memd/gone.py::test_x", "memd/gone.py"),
    ("./scripts/gone.sh --now", "scripts/gone.sh"),
    ("where is docs/old/?", "docs/old"),
    ("修改src/gone.py文件", "src/gone.py"),
    ("参见 docs/缺.md。", "docs/缺.md"),
    ("文档/缺.md", "文档/缺.md"),
    (".github/workflows/gone.yml, please", ".github/workflows/gone.yml"),
    ("src/gone's owner", "src/gone"),
    ('"src/gone"', "src/gone"),
]


@pytest.mark.parametrize(("text", "path"), PLANTED)
def test_a_planted_path_is_marked(text: str, path: str) -> None:
    assert gone(text) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "~/.x and ~/src/y",
        "/etc/y /src/gone.py",
        "https://example.org/src/gone.py",
        "git@github.com:me/src/gone.py",
        "github.com/me/src/gone",
        "other-repo/src/gone.py",
        "../src/gone.py src/../gone",
        "--src/b -src/b --out=src/b",
        "$HOME/src/b ${ROOT}/src/b <repo>/src/b %TMP%/src/b C:\\src\\b",
        "src/*.py src/**/x src/{a,b}/c src/<name>.py src/$NAME src/x?.py src/gone*",
        "src/... src/…/x src/.../x src/",
        "${ROOT}src/b <repo>src/b",
        "and/or read/write",
        "src main.py docs",
        "src/main.py `src/main.py:3` src/main.py's src/main.py, src/main.py。",
        "docs/my notes.md",
        "docs/a, b.md",
        "docs/订单.md",
        "src/it's/x.py",
        "src/a(b).py",
        "memd/a:b",
        "app/[id]/page.tsx",
        "src/old.",
        "./scripts/run.sh",
        "src//x",
        "",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert gone(text) == []


def test_each_once_in_order_and_at_most_twelve() -> None:
    assert gone("src/b src/a src/b") == ["src/b", "src/a"]
    assert len(gone(" ".join(f"src/{at}x" for at in range(20)))) == 12


def test_without_a_repository_nothing_is_marked() -> None:
    assert gone_paths("src/gone.py", frozenset(), lambda _path: False) == []


def test_a_huge_text_takes_no_time() -> None:
    assert gone("src/" * 300_000) == []
    assert len(gone("src/a " * 200_000)) == 1
