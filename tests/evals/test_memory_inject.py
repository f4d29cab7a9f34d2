"""The tool against a fake endpoint on this machine; a real one is never asked."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from . import memory_inject
from .memory_inject import FIXTURES, Arm, Label, read_labels

HAND = FIXTURES / "labels.json"
RIGHT = {case.prompt: list(case.relevant) for case in read_labels(HAND)}


class Endpoint:
    """An OpenAI-compatible endpoint that answers as `reply` says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.reply: Callable[[str], object] = lambda prompt: answer(RIGHT[prompt], usage={"cost": 0.4})
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append(body)
                endpoint.keys.append(self.headers["Authorization"])
                reply = endpoint.reply(body["messages"][-1]["content"])
                raw = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(500 if reply is None else 200)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        """End it."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def prompts(self) -> list[str]:
        """The prompts it was asked about."""
        return [body["messages"][-1]["content"] for body in self.asked]


def answer(names: object, usage: object = None, text: str | None = None) -> dict[str, object]:
    content = json.dumps({"relevant": names}) if text is None else text
    return {"choices": [{"message": {"role": "assistant", "content": content}}], "usage": usage}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    fake = Endpoint()
    yield fake
    fake.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "labels-judge.json"


def label(endpoint: Endpoint, out: Path, *options: str, cap: str = "100") -> int:
    return memory_inject.main(
        [
            "label",
            *("--model", "judge/one", "--cap-usd", cap, "--url", endpoint.url, "--key-env", "JUDGE_KEY"),
            *("--out", str(out), "--ledger", str(out.with_name("ledger.jsonl")), *options),
        ]
    )


def rows(out: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in out.with_name("ledger.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        assert row.pop("at") > 1_700_000_000
    return rows


def test_every_case_is_judged_once_and_the_hand_labels_stay(
    endpoint: Endpoint, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "no-key-at-all")
    before = HAND.read_bytes()
    assert label(endpoint, out) == 0
    assert read_labels(out) == read_labels(HAND)
    assert HAND.read_bytes() == before
    assert rows(out) == [{"model": "judge/one", "judged": 11, "usd": 4.4, "cap_usd": 100.0, "stopped": None}]
    assert endpoint.prompts == list(RIGHT)
    assert set(endpoint.keys) == {"Bearer no-key-at-all"}
    request = endpoint.asked[0]
    assert (request["model"], request["usage"]) == ("judge/one", {"include": True})
    assert "- project_gate_interlock: The intake gate never opens" in request["messages"][0]["content"]
    assert memory_inject.main(["check", "--labels", str(out)]) == 0
    assert memory_inject.main(["replay", "--labels", str(out)]) == 0


def test_the_cap_is_not_passed(endpoint: Endpoint, out: Path) -> None:
    assert label(endpoint, out, cap="1.1") == 1
    assert len(endpoint.asked) == 2  # a third could make it 1.2
    assert [case.id for case in read_labels(out)] == ["i01", "i02"]
    assert rows(out) == [{"model": "judge/one", "judged": 2, "usd": 0.8, "cap_usd": 1.1, "stopped": "the cap"}]


def test_what_was_judged_is_kept_and_not_asked_again(endpoint: Endpoint, out: Path) -> None:
    label(endpoint, out, cap="1.1")
    endpoint.asked.clear()
    assert label(endpoint, out) == 0
    assert len(endpoint.asked) == 9
    assert read_labels(out) == read_labels(HAND)
    assert [row["judged"] for row in rows(out)] == [2, 9]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"cost": "0.4"},
        {"cost": None},
        {"cost": -1},
        {"cost": True},
        {"prompt_tokens": 900, "completion_tokens": 20},
    ],
)
def test_it_stops_when_the_cost_cannot_be_counted(endpoint: Endpoint, out: Path, usage: object) -> None:
    endpoint.reply = lambda prompt: answer(RIGHT[prompt], usage)
    assert label(endpoint, out) == 1
    assert len(endpoint.asked) == 1
    assert not out.exists()
    assert rows(out)[0]["stopped"] == "the cost of i01 cannot be counted"


def test_tokens_are_counted_by_their_prices(endpoint: Endpoint, out: Path) -> None:
    endpoint.reply = lambda prompt: answer(RIGHT[prompt], {"prompt_tokens": 1000, "completion_tokens": 10})
    assert label(endpoint, out, "--usd-per-mtok", "2", "50") == 0
    assert rows(out)[0]["usd"] == pytest.approx(11 * 0.0025)
    endpoint.reply = lambda prompt: answer(RIGHT[prompt], {"prompt_tokens": 1000})
    out.unlink()
    assert label(endpoint, out, "--usd-per-mtok", "2", "50") == 1


@pytest.mark.parametrize(
    "reply",
    [
        answer(["no-such-note"], {"cost": 0.1}),
        answer("project_gate_interlock", {"cost": 0.1}),
        answer([["x"]], {"cost": 0.1}),
        answer(None, {"cost": 0.1}, text="I think none."),
        {"choices": [], "usage": {"cost": 0.1}},
    ],
)
def test_an_answer_that_is_none_stops_it_and_is_paid_for(endpoint: Endpoint, out: Path, reply: object) -> None:
    endpoint.reply = lambda _prompt: reply
    assert label(endpoint, out) == 1
    assert not out.exists()
    [row] = rows(out)
    assert (row["usd"], row["judged"]) == (0.1, 0)
    assert row["stopped"] == "the judge's answer to i01 names no notes of the store"


def test_an_answer_in_a_code_block_is_one(endpoint: Endpoint, out: Path) -> None:
    endpoint.reply = lambda _prompt: answer(None, {"cost": 0}, text='```json\n{"relevant": []}\n```')
    assert label(endpoint, out) == 0
    assert all(case.relevant == () for case in read_labels(out))


@pytest.mark.parametrize("reply", [None, b"not JSON", b"[]"])
def test_a_broken_endpoint_stops_it(endpoint: Endpoint, out: Path, reply: object) -> None:
    endpoint.reply = lambda _prompt: reply
    assert label(endpoint, out) == 1
    assert rows(out)[0]["stopped"].startswith("the endpoint: ")


def test_nobody_there_stops_it(out: Path, endpoint: Endpoint) -> None:
    assert label(endpoint, out, "--url", "http://127.0.0.1:1/v1") == 1
    assert rows(out)[0]["judged"] == 0


def test_the_hand_labels_are_never_the_place_to_write(endpoint: Endpoint, out: Path) -> None:
    assert label(endpoint, HAND) == 2
    assert endpoint.asked == []
    assert not out.with_name("ledger.jsonl").exists()


@pytest.mark.parametrize("cap", ["0", "-1", "nan", "inf", "much"])
def test_a_cap_is_an_amount(endpoint: Endpoint, out: Path, cap: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        label(endpoint, out, cap=cap)


def test_check_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "labels.json"
    case = {"id": "x", "prompt": "p", "relevant": ["user_owner", "nobody"]}
    labels.write_text(json.dumps({"cases": [case, {**case, "relevant": []}]}), "utf-8")
    assert memory_inject.main(["check", "--labels", str(labels)]) == 1
    assert capsys.readouterr().out == "x: no note nobody\nx: twice\n"
    assert memory_inject.main(["check"]) == 0
    assert capsys.readouterr().out == "11 cases, every note named is there\n"


def test_replay_scores_both_arms(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_inject.main(["replay"]) == 0
    head, before, now = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["arm", "cases", "labelled", "right"]
    assert before.split()[:3] == ["before", "11", "9"]
    assert now.split()[:3] == ["now", "11", "9"]
    assert int(before.split()[3]) == 9
    assert int(now.split()[3]) >= 8
    assert int(now.split()[5]) < int(before.split()[5])
    assert int(now.split()[6]) == 0 < int(before.split()[6])


def test_replay_scores_blocks_that_were_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for case in read_labels(HAND):
        (tmp_path / f"{case.id}.txt").write_text("nothing", "utf-8")
    assert memory_inject.main(["replay", "--blocks", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["now", "11", "9", "0", "0", "0", "0", "7"]


def test_what_an_arm_counts() -> None:
    labels = [Label("a", "p", ("one", "two")), Label("b", "p", ("one",)), Label("c", "p", ())]
    blocks = {
        "a": "### two · repo · user — x\ntext\n### four · global · feedback\n\n- [one](one.md) — y",
        "b": "- [one](one.md) — y · global\n- [Label](three.md)",
        "c": "### one · repo · untyped — x",
    }
    size = sum(len(block.encode()) for block in blocks.values())
    assert Arm.of(labels, blocks) == Arm(cases=3, labelled=2, bodied=1, shown=2, wrong=1, unasked=1, size=size)
