"""`memctl doctor` and a daemon that has just begun. Law: what is about to be well is no finding."""

from typing import Any, cast

import pytest

from memd import __version__
from memd.memctl import running
from memd.memctl.ctl import Ctl
from memd.memctl.ward import daemon


class Told:
    """A daemon that answers `daemon.status` with these in turn, the last again and again."""

    def __init__(self, *statuses: dict[str, Any]) -> None:
        self._left = list(statuses)

    def call(self, method: str) -> dict[str, Any]:
        assert method == "daemon.status"
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


def status(*, watching: bool = False, findings: tuple[dict[str, str], ...] = ()) -> dict[str, Any]:
    return {"watching": watching, "findings": findings}


def kinds(*statuses: dict[str, Any]) -> list[str]:
    return [one.kind for one in daemon.look(cast("Ctl", Told(*statuses)))]


@pytest.fixture(autouse=True)
def _answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "running", lambda: {"version": __version__})


LOOK = {"kind": "look", "reason": "r"}


def test_a_daemon_that_is_about_to_watch_is_waited_for() -> None:
    assert kinds(status(), status(), status(watching=True)) == []
    assert kinds(status(findings=(LOOK,)), status(watching=True, findings=(LOOK,))) == ["look"]


def test_one_that_never_watches_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "BEGINS_S", 0.1)
    assert kinds(status()) == ["watching"]
    assert kinds(status(), status(findings=(LOOK,))) == ["look", "watching"]
