"""The forms of words and what a query asks for, by tables."""

import pytest

from memd import forms, tokens
from memd.forms import CHARACTER, EXACT, JOINED, NEIGHBOURS, WORD, Words

FORMS = {
    "scripts/forge_pr.py": ("script", "forg", "pr", "py"),
    "forge-pr": ("forg", "pr"),
    "retries": ("retri",),
    "2.8.3": ("2", "8", "3"),
    "__init__": ("init",),
    "_": ("_",),
    "step-by-step": ("step", "step"),
    "数据": ("数据",),
    "план-график": ("план", "график"),
}
HUMPS = {
    "renderBlock": ["render block"],
    "HTTPServer": ["http server"],
    "parseURLPath twice, parseURLPath": ["parse url path", "parse url path"],
    "S3Bucket": ["s 3 bucket"],
    "My_fooBar.bazQux": ["foo bar", "baz qux"],
    "plain words, ALL CAPS, Capital, URLs, v2, snake_case": [],
    "日本fooBar語": ["foo bar"],
    "": [],
}


@pytest.mark.parametrize("word", FORMS)
def test_forms(word: str) -> None:
    assert tokens.tokenize(word) == [word]
    assert forms.forms(word) == FORMS[word]


@pytest.mark.parametrize("text", HUMPS)
def test_humps(text: str) -> None:
    found = forms.humps(text)
    assert [" ".join(forms.parts_of(hump)) for hump in found] == HUMPS[text]


def test_a_hump_has_the_forms_of_its_pieces() -> None:
    [hump] = forms.humps("retriesCounted")
    assert forms.forms(hump) == ("retri", "count")


def test_spread_keys_have_no_forms() -> None:
    assert [forms.forms(key) for key in tokens.spread_keys("数据")] == [(), ()]


def test_a_function_word_is_no_part() -> None:
    assert forms.forms("and/or") == ()
    assert forms.forms("out-of-memory") == ("out", "memori")


def test_fields_keep_their_words_and_their_humps() -> None:
    words = forms.words("forge-pr", "Run forgeTests first", "Then renderBlock, and 数据库.")
    assert list(words.name) == ["forge-pr"]
    assert list(words.hook) == ["run", "forgetests", "first", *forms.humps("forgeTests")]
    assert list(words.body) == ["renderblock", "数据", "据库", *forms.humps("renderBlock")]
    assert words.tokens == tokens.tokenize("forge-pr Run forgeTests first Then renderBlock, and 数据库.")


def test_words_of_nothing_but_tokens_are_the_bodys() -> None:
    assert [list(field) for field in (Words(["a1"]).name, Words(["a1"]).hook, Words(["a1"]).body)] == [[], [], ["a1"]]


def test_shared_words_are_one_object() -> None:
    known: dict[str, str] = {}
    one, other = (forms.words("n", "hook", f"body fooBar{''}").shared(known) for _ in range(2))
    assert one == other == forms.words("n", "hook", "body fooBar")
    assert all(a is b for a, b in zip([*one.tokens, *one.humps], [*other.tokens, *other.humps], strict=True))


def asked(text: str) -> dict[tuple[str, bool], tuple[str, float]]:
    return {(one.key, one.is_form): (one.kind, one.share) for one in forms.query(text).asked}


def test_a_word_is_asked_for_as_it_is_and_by_its_form() -> None:
    assert asked("retries") == {("retries", False): ("word", WORD), ("retri", True): ("form", 1.0)}


def test_an_identifier_is_asked_for_whole_and_by_its_parts() -> None:
    [whole, *parts] = forms.query("forge_pr.py").asked
    assert (whole.key, whole.share, whole.above) == ("forge_pr.py", EXACT, ("forg", "pr", "py"))
    assert [(part.kind, part.key) for part in parts if part.kind == "part"] == [
        ("part", "forg"),
        ("part", "pr"),
        ("part", "py"),
    ]


def test_what_prose_joins_by_a_hyphen_is_no_identifier() -> None:
    assert forms.query("two-dimensional").asked[0].above == ()
    assert asked("two-dimensional")["two-dimensional", False] == ("word", WORD)


def test_neighbours_are_asked_for_as_one_word() -> None:
    assert asked("file names")["filenam", True] == ("joined", JOINED)
    assert not any(kind == "joined" for kind, _ in asked("数据 file").values())


def test_of_a_long_query_neighbours_are_not() -> None:
    longest = ["forge_pr", *(f"word{number}" for number in range(NEIGHBOURS - 2))]  # as many parts
    assert forms.query(" ".join(longest)).joined
    assert not forms.query(" ".join([*longest, "further"])).joined


def test_of_a_pair_of_characters_each_is_asked_for_too() -> None:
    assert asked("数据")["数*", False] == ("character", CHARACTER)
    assert asked("数") == {("数*", False): ("word", 1.0 + WORD)}


def test_a_word_that_stands_alone_counts_as_one_though_it_is_a_part_as_well() -> None:
    assert asked("forge_pr forge")["forg", True] == asked("forge forge_pr")["forg", True] == ("form", 1.0)


def test_the_names_a_query_means() -> None:
    assert forms.query(" Forge PR ").names == ("Forge PR", "forge-pr", "forge_pr")
    assert "buildhost-tmp" in forms.query("what does buildhost-tmp say").names
    assert forms.query("") == forms.Query(said=(), names=())
