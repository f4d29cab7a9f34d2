"""Where the client and the daemon look. Law: the table of SPEC 1, one environment a row."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import memd_client
from memd_client import where
from memd_client.session import of_environment

UID = os.getuid()

CASES = json.loads((Path(__file__).parents[1] / "cases" / "where.json").read_text())["cases"]

HOMES = [
    ({}, "/u/.local/share/memd"),
    ({"MEMD_HOME": "/m"}, "/m"),
    ({"MEMD_HOME": "/m/"}, "/m"),
    ({"MEMD_HOME": ""}, "/u/.local/share/memd"),
    ({"MEMD_HOME": "~/.yi"}, "/u/.yi"),
    ({"MEMD_HOME": "~"}, "/u"),
    ({"MEMD_HOME": "/m", "XDG_DATA_HOME": "/x"}, "/m"),
    ({"XDG_DATA_HOME": "/x"}, "/x/memd"),
    ({"XDG_DATA_HOME": "/x/"}, "/x/memd"),
    ({"XDG_DATA_HOME": ""}, "/u/.local/share/memd"),
    ({"XDG_DATA_HOME": "relative"}, "/u/.local/share/memd"),
    ({"XDG_DATA_HOME": "~/x"}, "/u/.local/share/memd"),
    ({"MEMD_HOME": "/mit leer/注"}, "/mit leer/注"),
]

CONFIGS = [
    ({}, "/u/.config/memd/config.toml"),
    ({"MEMD_CONFIG": "/c.toml"}, "/c.toml"),
    ({"MEMD_CONFIG": "~/c.toml"}, "/u/c.toml"),
    ({"MEMD_CONFIG": ""}, "/u/.config/memd/config.toml"),
    ({"MEMD_CONFIG": "/c.toml", "XDG_CONFIG_HOME": "/x"}, "/c.toml"),
    ({"XDG_CONFIG_HOME": "/x"}, "/x/memd/config.toml"),
    ({"XDG_CONFIG_HOME": "x"}, "/u/.config/memd/config.toml"),
    ({"MEMD_HOME": "/m"}, "/u/.config/memd/config.toml"),
]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that stands for /run/user, still without one of ours. Short, as a socket's path must be."""
    with TemporaryDirectory(prefix="memd-", dir="/tmp") as place:
        monkeypatch.setattr(where, "RUN_USER", place)
        yield Path(place)


def env(**variables: str) -> dict[str, str]:
    return {"HOME": "/u"} | variables


def private(directory: Path) -> Path:
    directory.mkdir(mode=0o700)
    return directory


@pytest.mark.parametrize(("variables", "expected"), HOMES)
def test_home(variables: dict[str, str], expected: str) -> None:
    assert memd_client.home(env(**variables)) == expected


@pytest.mark.parametrize(("variables", "expected"), CONFIGS)
def test_config(variables: dict[str, str], expected: str) -> None:
    assert memd_client.config_path(env(**variables)) == expected


def test_log_and_start_lock_lie_in_the_home() -> None:
    variables = env(MEMD_HOME="/m")
    assert memd_client.log_path(variables) == "/m/memd.log"
    assert memd_client.start_lock_path(variables) == "/m/.start.lock"


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMD_HOME", "/elsewhere")
    assert memd_client.home() == "/elsewhere"
    assert memd_client.socket_path() == "/elsewhere/run/memd.sock"


@pytest.mark.parametrize("variable", ["MEMD_HOME", "MEMD_CONFIG", "MEMD_SOCKET"])
@pytest.mark.parametrize("value", ["here", "./here", "~nobody-of-that-name/here"])
def test_a_relative_place_of_memds_own_is_an_error(variable: str, value: str) -> None:
    look = {
        "MEMD_HOME": memd_client.home,
        "MEMD_CONFIG": memd_client.config_path,
        "MEMD_SOCKET": memd_client.socket_path,
    }[variable]
    with pytest.raises(memd_client.BadPlace) as caught:
        look(env(**{variable: value}))
    assert variable in caught.value.message
    assert value in caught.value.message


@pytest.mark.parametrize("value", [None, "", "relative"])
def test_without_a_home_variable_the_user_database_has_it(value: str | None) -> None:
    import pwd

    variables = {} if value is None else {"HOME": value}
    assert memd_client.user_home(variables) == pwd.getpwuid(UID).pw_dir


def test_a_user_without_any_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 987654321)
    with pytest.raises(memd_client.BadPlace, match="MEMD_HOME"):
        memd_client.home({})


def test_socket_where_nobody_says_anything(runtime: Path) -> None:
    assert memd_client.socket_path(env()) == "/u/.local/share/memd/run/memd.sock"
    private(runtime / str(UID))
    assert memd_client.socket_path(env()) == f"{runtime}/{UID}/memd/memd.sock"


def test_socket_in_the_runtime_directory(runtime: Path) -> None:
    private(runtime / str(UID))
    mine = private(runtime / "mine")
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(mine))) == f"{mine}/memd/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=f"{mine}/")) == f"{mine}/memd/memd.sock"


@pytest.mark.parametrize("value", ["", "mine", "./mine"])
def test_an_empty_or_relative_runtime_directory_counts_as_unset(
    runtime: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private(runtime / "mine")
    monkeypatch.chdir(runtime)
    expected = "/u/.local/share/memd/run/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=value)) == expected


def test_socket_of_a_named_home_lies_in_it(runtime: Path) -> None:
    mine = private(runtime / "mine")
    variables = env(MEMD_HOME="/m", XDG_RUNTIME_DIR=str(mine))
    assert memd_client.socket_path(variables) == "/m/run/memd.sock"
    assert memd_client.socket_path(variables | {"MEMD_SOCKET": "~/s"}) == "/u/s"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(mine), MEMD_SOCKET="/s")) == "/s"


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o770])
def test_a_runtime_directory_open_to_others_is_not_used(runtime: Path, mode: int) -> None:
    open_one = private(runtime / "open")
    open_one.chmod(mode)
    expected = "/u/.local/share/memd/run/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(open_one))) == expected
    private(runtime / str(UID))
    in_run = f"{runtime}/{UID}/memd/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(open_one))) == in_run


def test_a_runtime_directory_that_is_a_file_or_gone_is_not_used(runtime: Path) -> None:
    file = runtime / "file"
    file.touch(mode=0o600)
    expected = "/u/.local/share/memd/run/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(file))) == expected
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(runtime / "gone"))) == expected


@pytest.mark.parametrize("end", ["", "/", "//"])
def test_a_runtime_directory_behind_a_link_is_not_used(runtime: Path, end: str) -> None:
    (runtime / "link").symlink_to(private(runtime / "mine"))
    expected = "/u/.local/share/memd/run/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=f"{runtime}/link{end}")) == expected


def test_a_runtime_directory_of_somebody_else_is_not_used(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = private(runtime / "theirs")
    monkeypatch.setattr(os, "getuid", lambda: UID + 1)
    expected = "/u/.local/share/memd/run/memd.sock"
    assert memd_client.socket_path(env(XDG_RUNTIME_DIR=str(theirs))) == expected


def test_the_limit_is_the_platforms() -> None:
    assert (107 if sys.platform == "linux" else 103) == memd_client.SOCKET_PATH_LIMIT


def test_a_socket_path_may_have_the_limit_in_bytes_and_no_more() -> None:
    limit = memd_client.SOCKET_PATH_LIMIT
    fits = "/" + "x" * (limit - 1)
    assert memd_client.socket_path(env(MEMD_SOCKET=fits)) == fits
    wide = "/" + "é" * (limit // 2) + "x"  # few characters, many bytes
    for path in (fits + "x", wide):
        with pytest.raises(memd_client.SocketPathTooLong) as caught:
            memd_client.socket_path(env(MEMD_SOCKET=path))
        length = len(path.encode())
        assert caught.value.length == length > limit
        for part in (path, str(length), str(limit), "MEMD_SOCKET"):
            assert part in caught.value.message


def test_a_home_too_deep_for_a_socket_names_the_whole_path() -> None:
    deep = "/" + "d" * 120
    with pytest.raises(memd_client.SocketPathTooLong, match=f"{deep}/run/memd.sock is 135 bytes"):
        memd_client.socket_path(env(MEMD_HOME=deep))


def test_home_id_is_of_the_real_path(runtime: Path) -> None:
    real = private(runtime / "real")
    (runtime / "link").symlink_to(real)
    identity = memd_client.home_id(env(MEMD_HOME=str(real)))
    assert memd_client.home_id(env(MEMD_HOME=str(runtime / "link"))) == identity
    assert memd_client.home_id(env(MEMD_HOME="/")) == "8a5edab282632443"  # printf / | sha256sum
    assert identity != "8a5edab282632443"


def depth_of(variables: dict[str, str]) -> int:
    """The depth in which the session of an environment is started."""
    started: list[dict[str, Any]] = []

    def ask(_: str, params: dict[str, Any]) -> dict[str, Any]:
        started.append(params)
        return {}

    of_environment({"MEMD_SESSION": "s"} | variables, ask, lambda: "/").start()
    return int(started[0]["depth"])


LOOK: dict[str, Callable[[dict[str, str]], object]] = {
    "home": memd_client.home,
    "config": memd_client.config_path,
    "log": memd_client.log_path,
    "lock": memd_client.start_lock_path,
    "home_id": memd_client.home_id,
    "socket": memd_client.socket_path,
    "depth": depth_of,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['of']}-{json.dumps(case['env'])[:60]}")
def test_the_table_that_every_client_shares(runtime: Path, case: dict[str, Any]) -> None:
    def told(text: str) -> str:
        return text.replace("{run}", str(runtime)).replace("{uid}", str(UID))

    for name, mode in case.get("dirs", {}).items():
        private(runtime / told(name)).chmod(int(mode, 8))
    for name, target in case.get("links", {}).items():
        (runtime / name).symlink_to(runtime / target)
    variables = {"HOME": "/u"} | {name: told(value) for name, value in case["env"].items()}
    if "throws" in case:
        with pytest.raises(memd_client.MemdError) as caught:
            LOOK[case["of"]](variables)
        assert caught.value.kind == case["throws"]
    else:
        gives = case["gives"]
        assert LOOK[case["of"]](variables) == (told(gives) if isinstance(gives, str) else gives)
