"""The memory tool's paths and texts. Law: a path names one place or is refused; a name is the one that memd gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import note
from memd_anthropic import notes, paths, shown

PLACES = [
    ("/memories", "/memories", "", ""),
    ("/memories/", "/memories", "", ""),
    ("/memories/repo/forge.md", "/memories/repo/forge.md", "repo", "forge"),
    ("/memories/global/我喜欢-pnpm.md", "/memories/global/我喜欢-pnpm.md", "global", "我喜欢-pnpm"),
    ("/memories//repo///forge.md/", "/memories/repo/forge.md", "repo", "forge"),
    ("/memories/repo/forge.txt", "/memories/repo/forge.txt", "", ""),
    ("/memories/repo/a/forge.md", "/memories/repo/a/forge.md", "", ""),
    ("/memories/repo/.md", "/memories/repo/.md", "", ""),
    ("/memories/progress.md", "/memories/progress.md", "", ""),
    ("/memories/a b/100%.txt", "/memories/a b/100%.txt", "", ""),
    ("/memories/cafe\u0301.md", "/memories/café.md", "", ""),
    ("/memories/...", "/memories/...", "", ""),
]

BAD = [
    "",
    "memories/x",
    "/etc/passwd",
    "/memoriesx/y",
    "/Memories/x",
    "/memories/../x",
    "/memories/a/../../x",
    "/memories/./x",
    "/memories/a/..",
    "/memories/%2e%2e/x",
    "/memories/%2E%2E%2Fx",
    "/memories/%252e%252e/x",
    "/memories/a%5cb",
    "/memories/a\\..\\b",
    "/memories/a\x00b",
    "/memories/a\nb",
    "/memories/a\u202eb",
    "/memories/a\u200bb",
    "/memories/\ud800",
    "/memories/\uff0e\uff0e/x",  # full-width dots
    "/memories/a\uff0fb",  # a full-width slash
    "/memories/\u2025/x",  # two dots as one character
    "/memories/ /x",
    "/memories/ x",
    "/memories/" + "x" * 600,
]


@pytest.mark.parametrize(("typed", "path", "scope", "name"), PLACES)
def test_a_path_is_one_place(typed: str, path: str, scope: str, name: str) -> None:
    assert paths.place(typed) == (path, scope, name)


@pytest.mark.parametrize("typed", BAD)
def test_a_path_that_is_refused(typed: str) -> None:
    with pytest.raises(paths.PathError, match=r"^Error: "):
        paths.place(typed)


@given(st.text(max_size=300))
def test_a_slug_is_memd_s(text: str) -> None:
    assert paths.slug(text) == note.slug(text)


@given(st.lists(st.text("abcdefgh/.-_ é我", min_size=1, max_size=90), min_size=1, max_size=6).map("/".join))
def test_each_name_of_a_place_is_a_slug_that_memd_keeps(relative: str) -> None:
    try:
        place = paths.place(f"/memories/{relative}")
    except paths.PathError:
        return
    found = paths.names(place)
    assert [note.slug(name) for name in found] == found
    assert len(set(found)) == len(found)
    assert "memory" not in found


def test_a_path_that_is_no_name_of_its_own_gets_one() -> None:
    assert paths.names(paths.place("/memories/memory"))[0].startswith("memory-")
    assert paths.names(paths.place("/memories/!!!"))[0].startswith("file-")
    assert paths.names(paths.place("/memories/a/b.txt"))[0] == "a-b-txt"


@pytest.mark.parametrize("path", ["/memories/a.txt", "/memories/a/b", "/memories/repo/a/b.md"])
def test_a_claim_that_counts(path: str) -> None:
    assert paths.made(path) == path


@pytest.mark.parametrize(
    "path", ["", "a.txt", "/memories", "/memories/repo", "/memories/repo/a.md", "/memories/../x"]
)
def test_a_claim_that_does_not(path: str) -> None:
    assert paths.made(path) is None


TEXTS = [
    ("", False, 1, ""),
    ("words\npath: x\n", False, 1, ""),
    ("---\nname: x\n---\nwords", True, 4, ""),
    ("---\npath: /memories/a\n---\npath: other\n", True, 4, "/memories/a"),
    ('---\npath: "/memories/a \\"b\\""\n---\n', True, 4, '/memories/a "b"'),
    ("---\npath: '/memories/it''s'\n---\n", True, 4, "/memories/it's"),
    ("---\npath: one\npath: two\n---\n", True, 5, "two"),
    ("\ufeff---\r\npath: x\r\n---\r\n", True, 4, "x"),
    ('---\npath: "never closes\n---\n', True, 4, '"never closes'),
    ("---\npath: x\n", True, 1, ""),
]


@pytest.mark.parametrize(("text", "block", "line", "path"), TEXTS)
def test_what_is_read_of_a_text(text: str, block: bool, line: int, path: str) -> None:
    assert (notes.has_block(text), notes.body_line(text), notes.value_of(text, "path")) == (block, line, path)


@pytest.mark.parametrize(
    ("text", "hook"),
    [("", ""), ("\n \n", ""), ("\n## A  title \nmore", "A title"), ("x" * 300, "x" * 240), ("- item", "- item")],
)
def test_the_hook_of_a_bare_text(text: str, hook: str) -> None:
    assert notes.hook_of(text) == hook


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1K"), (1536, "1.5K"), (5 * 1024**2, "5M"), (3 * 1024**3, "3G")],
)
def test_a_size(count: int, text: str) -> None:
    assert shown.size(count) == text


def test_a_tree_is_two_levels_deep_and_hides_what_is_hidden() -> None:
    files = [
        ("/m/a", 1),
        ("/m/d/b", 2),
        ("/m/d/e/c", 4),
        ("/m/.git/x", 8),
        ("/m/d/node_modules/y", 16),
        ("/mm/z", 32),
    ]
    total, lines = shown.tree("/m", files, ["repo"])
    assert total == 7
    assert lines == ["1B\t/m/a", "6B\t/m/d/", "2B\t/m/d/b", "4B\t/m/d/e/", "0B\t/m/repo/"]


def test_lines_have_numbers_six_wide() -> None:
    assert shown.numbered(shown.lines_of("a\n\nb\n"), 99) == "    99\ta\n   100\t\n   101\tb"
    assert shown.lines_of("") == [""]
    assert shown.around("1\n2\n3\n4\n5\n6\n7\n", 4, 1).split() == ["2", "2", "3", "3", "4", "4", "5", "5", "6", "6"]
