"""The benches' plumbing, at sizes that say nothing about speed: no figure is judged here."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench import large, live, rows, saving, starting, whole
from bench.house import House, checked, file_system, resident_mb, run_program

SAVES = saving.Size(notes=3, more_notes=5, turns=2, rounds=1, seconds=0.01)
STARTS = starting.Size(notes=3, runs=1, starts=1)


def names(report: dict[str, Any]) -> list[str]:
    return [line["name"] for line in report["rows"]]


def test_saves_are_measured_through_a_daemon_and_without(tmp_path: Path) -> None:
    report: dict[str, Any] = saving.measure(tmp_path, SAVES)
    assert names(report) == [
        *("save.new.p50", "save.new.p90", "save.old.p50", "save.old.p90"),
        *("save.files.p50", "save.files.p90"),
        *("save.commit.p50", "save.commit.p90", "save.batch.8", "save.batch.64", "save.syncs.p50"),
        *("save.commit.5.p50", "save.commit.5.p90"),
        *("save.rate.1", "save.rate.8", "save.rate.32", "save.rate.64"),
    ]
    assert all(line["value"] > 0 for line in report["rows"])


def test_what_a_bench_saved_is_in_the_store(tmp_path: Path) -> None:
    house = House(tmp_path / "served")
    house.fill(3)
    with house.served(), house.raw() as client:
        listed = json.loads(client.ask(house.line("memory.list")))["result"]
        lines = saving.prepared(house, SAVES, 2, 0)
        assert saving.rate(house, lines, 0.01) > 0
        told = json.loads(client.ask(house.line("memory.stats")))["result"]["repo"]
    assert [note["name"] for note in listed["notes"]] == ["note-0", "note-1", "note-2"]
    assert told["notes"] == 3
    assert told["saves"] >= 3 + 2


def test_whole_stores_are_measured_while_others_ask(tmp_path: Path) -> None:
    size = whole.Size(notes=4, journaled_notes=2, records=20, openings=1)
    report: dict[str, Any] = whole.measure(tmp_path, size)
    assert names(report) == [
        *("import.4", "import.4.others", "rebuild.4", "rebuild.4.others", "rebuild.4.gone", "rebuild.4.gone.others"),
        *("open.20", "open.20.others", "log.20"),
    ]
    assert all(line["value"] > 0 for line in report["rows"])


def test_what_a_hand_writes_is_timed(tmp_path: Path) -> None:
    report: dict[str, Any] = live.measure(tmp_path, live.Size(edits=2, stores=2, idle_s=0.01, dropped=3))
    assert names(report) == [
        *("live.edit.p50", "live.edit.p99", "live.idle.2"),
        *("live.dropped.3", "live.dropped.save", "live.dropped.search", "live.dropped.elsewhere"),
    ]
    assert all(line["value"] >= 0 for line in report["rows"])


def test_stores_that_grow_are_weighed(tmp_path: Path) -> None:
    report: dict[str, Any] = large.measure(tmp_path, (2, 5), 3)
    searches = [f"large.search.p{percent}.{terms}" for terms in large.TERMS for percent in (50, 99)]
    assert names(report) == [
        *("large.open.2", "large.resident.2", "large.open.5", "large.resident.5", *searches, "large.growth.5"),
    ]


def test_what_is_strewn_is_taken_in_before_a_daemon_opens_it(tmp_path: Path) -> None:
    house = House(tmp_path / "served")
    house.strew(3)
    with house.served(), house.raw() as client:
        records = json.loads(client.ask(house.line("memory.log")))["result"]["records"]
    assert [record["op"] for record in records] == ["adopt"] * 3


def test_starts_are_measured_and_every_daemon_is_gone(tmp_path: Path) -> None:
    report: dict[str, Any] = starting.measure(tmp_path, STARTS)
    assert names(report) == [
        *("start.p50", "start.max", "start.resident"),
        *("memctl.search.p50", "memctl.search.p90", "memctl.search.most.p50"),
    ]
    assert [*tmp_path.rglob(".daemon.lock")]
    assert not [*tmp_path.rglob("memd.sock")]


def test_a_daemon_that_ends_says_why(tmp_path: Path) -> None:
    house = House(tmp_path / "served")
    house.env["MEMD_HOME"] = "not/absolute"
    with pytest.raises(RuntimeError, match="MEMD_HOME must be an absolute path"), house.served():
        pass


def test_a_refusal_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="refused"):
        checked(b'{"jsonrpc":"2.0","error":{},"id":1}\n')
    with pytest.raises(RuntimeError, match="refused"):
        checked(b'{"jsonrpc":"2.0","result":{')


def test_a_program_that_fails_is_no_measurement() -> None:
    assert run_program([sys.executable, "-c", "pass"], os.environ) > 0
    with pytest.raises(RuntimeError, match="status"):
        run_program([sys.executable, "-c", "raise SystemExit(3)"], os.environ)


def test_resident_memory_is_in_megabytes() -> None:
    assert 5 < resident_mb(os.getpid()) < 5000


@pytest.mark.skipif(sys.platform != "linux", reason="no mount table")
def test_a_file_system_in_memory_is_told() -> None:
    assert file_system(Path("/dev/shm")) == "tmpfs at /dev/shm"


@pytest.mark.parametrize(
    ("bounds", "ok", "kind"),
    [
        ({}, True, None),
        ({"most": 30}, True, "value"),
        ({"most": 29}, False, "value"),
        ({"most_times": 3}, True, "ratio"),
        ({"most_times": 2}, False, "ratio"),
        ({"least_times": 3}, True, "least"),
        ({"least_times": 4}, False, "least"),
    ],
)
def test_a_row_knows_whether_it_is_within_its_bound(bounds: dict[str, float], ok: bool, kind: str | None) -> None:
    line = rows.row("it", 30, "ms", floor=10, **bounds)
    assert (line["ratio"], line["ok"], line["bounds"]) == (3, ok, kind)


def test_a_bound_on_a_ratio_needs_a_floor() -> None:
    assert rows.row("it", 30, "ms", most_times=3)["ok"] is False
    assert rows.row("it", 30, "ms", least_times=3)["ok"] is False


def test_the_table_is_aligned_and_says_what_fell_short() -> None:
    lines = [
        rows.row("a.long.name", 1234.5, "µs", floor=2.0, most_times=12),
        {"name": "b", "value": 0.25, "unit": "ms", "floor": None, "ratio": None, "bound": 1, "ok": True},
        rows.row("c", 9, "saves/s", floor=3, least_times=3),
    ]
    assert rows.table(lines) == (
        "name         value  unit     floor    ratio   bound  ok\n"
        "a.long.name  1,234  µs           2  617.2 ×  ≤ 12 ×  NO\n"
        "b             0.25  ms                       ≤ 1 ms  ok\n"
        "c                9  saves/s      3      3 ×   ≥ 3 ×  ok\n"
    )


def test_the_middle_of_figures() -> None:
    assert rows.median([3.0, 1.0, 2.0]) == 2.0
    assert rows.percentile(map(float, range(100)), 90) == 90.0
    assert rows.percentile([1.0], 99) == 1.0


@pytest.fixture
def one_bench(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool, Path]]:
    """Stands for every bench: reports one row, which is over its bound in `search`; gives what was asked."""
    asked = []

    def run(name: str, *, quick: bool, place: Path) -> dict[str, Any]:
        asked.append((name, quick, place))
        report = rows.report(name, [rows.row(name, 2, "ms", most=1 if name == "search" else 3)], notes=5)
        return {**report, "load": [0.5, 1.5]}

    monkeypatch.setattr(bench, "run", run)
    return asked


def test_all_benches_make_one_table_and_one_json(
    one_bench: list[tuple[str, bool, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    assert bench.main(["--json", str(file)]) == 1
    assert [name for name, _, _ in one_bench] == list(bench.BENCHES)
    told = capsys.readouterr().out
    assert "search: notes 5, load 0.5 to 1.5" in told
    assert "NO" in told
    kept = json.loads(file.read_text())
    assert kept["ok"] is False
    assert [report["ok"] for report in kept["benches"]] == [name != "search" for name in bench.BENCHES]


def test_chosen_benches_run_in_their_order_and_print_json_alone(
    one_bench: list[tuple[str, bool, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--quick", "--json", "-", "--dir", str(tmp_path), "starting", "saving"]) == 0
    assert one_bench == [("saving", True, tmp_path), ("starting", True, tmp_path)]
    assert json.loads(capsys.readouterr().out)["quick"] is True


def test_a_quick_run_judges_nothing(one_bench: list[tuple[str, bool, Path]]) -> None:
    assert bench.main(["--quick", "search"]) == 0
    assert bench.main(["search"]) == 1
    assert len(one_bench) == 2


def test_an_unknown_bench_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["sprinting"])
    assert "sprinting" in capsys.readouterr().err


def test_every_bench_is_there() -> None:
    directory = Path(bench.__file__).parent
    assert all((directory / f"{name}.py").exists() for name in bench.BENCHES)
