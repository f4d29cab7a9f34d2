"""The Node client beside the Python one. Law: one class a kind on both sides, and the same verbs, reads and words.

Read from its text, so that this needs no Node; that it works is for `make test-real`.
"""

import inspect
import json
import re
from pathlib import Path

import pytest

import memory
from memd_client import brief, connection, errors

NODE = Path(__file__).parents[2] / "clients" / "node"
ERRORS = (NODE / "src" / "errors.js").read_text()
TYPES = (NODE / "index.d.ts").read_text()
PAGE = (NODE / "README.md").read_text()
CLASSES = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.MemdError)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_is_a_class_there_too(error: type[errors.MemdError]) -> None:
    found = re.search(rf"export class {error.__name__} extends (\w+) \{{(.*?)\}}", ERRORS, re.DOTALL)
    assert found is not None
    assert found[1] == ("Error" if error is errors.MemdError else error.__bases__[0].__name__)
    assert f'static kind = "{error.kind}"' in found[2]
    assert ("static code" in found[2]) == ("code" in vars(error))
    assert "code" not in vars(error) or f"static code = {error.code};" in found[2]
    assert f"export class {error.__name__} extends {found[1]}" in TYPES
    assert error is errors.MemdError or f"| `{error.__name__}` | {error.code} | `{error.kind}` |" in PAGE


def test_no_error_is_there_alone() -> None:
    assert set(re.findall(r"export class (\w+)", ERRORS)) == {each.__name__ for each in CLASSES}


def test_the_same_verbs_are_sent_twice() -> None:
    text = (NODE / "src" / "connection.js").read_text()
    reads = re.search(r"READS = new Set\(\[(.*?)\]\)", text, re.DOTALL)
    assert reads is not None
    assert set(re.findall(r'"([\w.]+)"', reads[1])) == connection.READS


def test_every_function_of_memory_is_there_and_typed() -> None:
    text = (NODE / "src" / "memory.js").read_text()
    mine = {name for name in [*memory.__all__, "list"] if inspect.iscoroutinefunction(getattr(memory, name))}
    theirs = {re.sub("_(.)", lambda found: found[1].upper(), name) for name in mine}
    assert len(theirs) > 8
    for name in theirs:
        assert re.search(rf"^export (async )?function {name}\(", text, re.MULTILINE)
        assert re.search(rf"^  {name}\(", TYPES, re.MULTILINE)
        assert f"`{name}(" in PAGE


def test_the_brief_has_the_same_words() -> None:
    text = (NODE / "src" / "brief.js").read_text()
    there = text.partition("const BRIEF = `\\\n")[2].partition("`;")[0]
    here = brief.remember("x")[:-1]
    here = here.replace("name=…, description=…, type=…, scope=…", "{ name, description, type, scope }")
    assert there == here.replace("expect=", "expect")


def test_the_package_is_what_it_says() -> None:
    package = json.loads((NODE / "package.json").read_text())
    assert (package["name"], package["version"], package["type"]) == ("@memd/client", "0.1.0", "module")
    assert "dependencies" not in package
    assert all((NODE / name).exists() for name in package["files"])
