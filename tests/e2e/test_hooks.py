"""`memctl hook` fed each agent's documented events, and held against its documented schema. SPEC section 13."""

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import memd_client
from memd_hooks import entry, envelope
from memd_hooks.hook import session_id
from support.daemon import Daemon, daemon_home
from support.fake_daemon import FakeDaemon
from support.hooks import AGENTS, MOST, ROOT, called, case, context, event, hook, path
from support.memctl_program import memctl

BODY = 'Forge "tests"\n' + '"\\' * 500
PROMPT = "How do I run the forge tests?"
COMPACTIONS = {"claude": "compact", "codex": "compact", "gemini": "compacting", "kimi": "compacting"}


def saved(daemon: Daemon) -> None:
    daemon.save("forge-tests", "Use -k smoke first.", description="Forge tests: smoke first")


@pytest.mark.parametrize("agent", AGENTS)
def test_the_first_prompt_gets_the_block_and_what_follows_a_compaction_again(daemon: Daemon, agent: str) -> None:
    saved(daemon)
    session = case(agent)["events"]["startup"]["session_id"]
    assert hook(daemon, agent, "session-start", "startup") == ""
    assert daemon.call("memory.stats")["repo"]["sessions"] == 1
    first = hook(daemon, agent, "prompt-submit", "prompt", PROMPT)
    assert "Use -k smoke first." in first
    assert first.startswith("<<<yi-external ")
    assert first.rstrip("\n").endswith(">>>")
    assert hook(daemon, agent, "prompt-submit", "prompt", "And how do the forge tests end?") == ""
    assert hook(daemon, agent, "session-start", "resume") == ""
    assert hook(daemon, agent, "prompt-submit", "prompt", "once more the forge") == ""
    again = hook(daemon, agent, "session-start", COMPACTIONS[agent])
    if COMPACTIONS[agent] == "compacting":  # such an agent's start after a compaction is its next prompt
        assert again == ""
        again = hook(daemon, agent, "prompt-submit", "prompt", "go on")
    assert again == first
    assert hook(daemon, agent, "prompt-submit", "prompt", "go on") == ""
    assert hook(daemon, agent, "session-end", "end") == ""
    assert daemon.call("memory.stats")["repo"]["sessions"] == 1
    with daemon.connect() as connection:
        assert connection.call("session.end", {"session": session}) == {"ended": False}


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_clear_that_keeps_the_session_gets_the_block_again(daemon: Daemon, agent: str) -> None:
    saved(daemon)
    first = hook(daemon, agent, "prompt-submit", "prompt", PROMPT)  # nobody started the session: the prompt does
    assert hook(daemon, agent, "session-start", "clear") == first != ""
    assert hook(daemon, agent, "session-start", "clear", session_id="another-1") == ""
    assert hook(daemon, agent, "prompt-submit", "prompt", PROMPT, session_id="another-1") == first


@pytest.mark.parametrize("agent", AGENTS)
def test_a_blank_prompt_spends_nothing(daemon: Daemon, agent: str) -> None:
    saved(daemon)
    assert hook(daemon, agent, "prompt-submit", "prompt", "  \n") == ""
    assert "smoke" in hook(daemon, agent, "prompt-submit", "prompt", PROMPT)


def test_a_prompt_of_parts_is_read(daemon: Daemon) -> None:
    saved(daemon)
    assert "smoke" in hook(daemon, "kimi", "prompt-submit", "parts", PROMPT)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_plan_mode_is_passed_on_and_ends(daemon: Daemon, agent: str) -> None:
    session = case(agent)["events"]["prompt"]["session_id"]
    note = {"markdown": "x", "fields": {"type": "user", "description": "A fact"}, "session": session}
    with daemon.connect() as connection:
        hook(daemon, agent, "prompt-submit", "plan", PROMPT)
        with pytest.raises(memd_client.ReadOnly, match="plan mode"):
            connection.call("memory.save", note)
        hook(daemon, agent, "prompt-submit", "prompt", PROMPT)
        assert connection.call("memory.save", note)["saves_left"] == 2


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_subagents_event_is_not_the_sessions(daemon: Daemon, agent: str) -> None:
    saved(daemon)
    assert hook(daemon, agent, "prompt-submit", "subagent", PROMPT) == ""
    assert "smoke" in hook(daemon, agent, "prompt-submit", "prompt", PROMPT)


def test_a_transcript_is_named_where_the_config_allows_it_and_else_left_out(daemon: Daemon) -> None:
    transcript = daemon.repo / "transcript.jsonl"
    transcript.write_text('{"role": "user", "content": "The zebra build is slow"}\n')
    assert hook(daemon, "gemini", "session-start", "startup") == ""  # refused, and started all the same
    session = case("gemini")["events"]["startup"]["session_id"]
    state = json.loads((daemon.home / "sessions" / f"{session}.json").read_text())
    assert state.get("transcript") is None
    daemon.terminate()
    (daemon.root / "config.toml").write_text(f"[history]\nroots = [{json.dumps(str(daemon.repo))}]\n")
    daemon.env["MEMD_CONFIG"] = str(daemon.root / "config.toml")
    daemon.start()
    assert hook(daemon, "gemini", "session-start", "startup", session_id="two") == ""
    assert json.loads((daemon.home / "sessions" / "two.json").read_text())["transcript"] == str(transcript)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", ["session-start", "prompt-submit", "session-end"])
def test_without_a_daemon_it_is_silent(agent: str, name: str) -> None:
    kind = {"session-start": "startup", "prompt-submit": "prompt", "session-end": "end"}[name]
    with daemon_home() as absent:
        raw = event(agent, kind, absent.repo, PROMPT)
        assert called(absent, agent, name, raw, MEMD_NO_AUTOSTART="1") == ""
        assert not absent.home.exists()


def test_a_late_answer_is_said_and_the_block_comes_with_the_next_prompt(daemon: Daemon) -> None:
    saved(daemon)
    daemon.terminate()
    daemon.socket.unlink(missing_ok=True)
    with FakeDaemon(str(daemon.socket), lambda _request: b""):  # it listens, and never answers
        said = hook(daemon, "claude", "prompt-submit", "prompt", PROMPT)
    daemon.socket.unlink(missing_ok=True)
    assert re.match(r"\[memd did not answer within 5 s: .* memctl search \"words\" finds them now\]", said)
    daemon.start()
    session = case("claude")["events"]["prompt"]["session_id"]
    with daemon.connect() as connection:  # the late answer had frozen the block
        connection.call("session.start", {"session": session, "cwd": str(daemon.repo)})
        connection.call("memory.focus", {"session": session, "prompt": PROMPT})
    assert "smoke" in hook(daemon, "claude", "prompt-submit", "prompt", "go on")
    assert hook(daemon, "claude", "prompt-submit", "prompt", "go on") == ""


def test_what_the_daemon_refuses_is_shown_to_the_person(daemon: Daemon) -> None:
    raw = event("claude", "startup", daemon.repo, cwd="/no/such/directory")
    text = called(daemon, "claude", "session-start", raw)
    assert json.loads(text)["systemMessage"].startswith("memd: session.start: ")
    assert called(daemon, "kimi", "session-start", event("kimi", "startup", daemon.repo, cwd="/no/such")) == ""


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"session_id": 7}'])
def test_what_is_no_event_fails_nothing(daemon: Daemon, raw: bytes) -> None:
    done = memctl(daemon.env, "hook", "claude", "prompt-submit", stdin=raw, cwd=daemon.repo)
    assert (done.code, done.out) == (0, "")


def test_an_event_whose_end_does_not_come_is_taken_after_a_second_of_silence(daemon: Daemon) -> None:
    saved(daemon)
    process = subprocess.Popen(
        [sys.executable, "-m", "memd.memctl", "hook", "claude", "prompt-submit"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**daemon.env, "PYTHONPATH": str(ROOT)},
        cwd=daemon.repo,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(event("claude", "prompt", daemon.repo, PROMPT))
        process.stdin.flush()
        began = time.monotonic()
        assert "smoke" in context(process.stdout.read().decode())
        assert time.monotonic() - began > 0.9
    assert process.returncode == 0


@pytest.mark.parametrize("words", [[], ["claude"], ["emacs", "prompt-submit"], ["claude", "stop"], ["a", "b", "c"]])
def test_a_wrong_word_is_no_veto(words: list[str]) -> None:
    with daemon_home() as absent:
        done = memctl(absent.env, "hook", *words)
        assert done.code == 1
        assert "claude, codex, gemini, kimi" in done.err


def test_the_longest_block_is_cut_within_its_fence(daemon: Daemon) -> None:
    for number in range(40):
        daemon.save(f"forge-{number}", BODY, description=f"Forge {number} " + '"w" ' * 50)
    for agent in AGENTS:
        text = hook(daemon, agent, "prompt-submit", "prompt", "forge tests", session_id=f"long-{agent}").rstrip("\n")
        assert len(text) > MOST // 2
        opening, *_, closing = text.split("\n")
        assert opening.split()[1] == closing.split()[1].rstrip(">")


def test_a_cut_says_so_and_closes_its_fence() -> None:
    opening = '<<<yi-external 0123456789abcdef source="memory" trust="untrusted">>>\n'
    whole = opening + "a line\n" * 99 + "<<<end-yi-external 0123456789abcdef>>>"
    cut = envelope.cut(whole, 300)
    assert len(cut) <= 300
    mark = cut.split()[1]
    assert mark != "0123456789abcdef"
    assert cut.endswith(f"search for the rest]\n<<<end-yi-external {mark}>>>")
    assert envelope.cut(whole, len(whole)) == whole


@pytest.mark.parametrize(
    ("given", "id_"),
    [("3f6c-1", "3f6c-1"), ("session_abc", "session_abc"), ("", ""), ("a" * 128, "a" * 128)],
)
def test_an_id_that_fits_stays(given: str, id_: str) -> None:
    assert session_id(given) == id_


@pytest.mark.parametrize("given", ["a/b", "-x-", "…", "a" * 129, "a\nb", "../../etc"])
def test_an_id_that_does_not_fit_is_made_to(given: str) -> None:
    made = session_id(given)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", made)
    assert len(made) <= 128
    assert made != session_id(given + "x")


ENTRIES = [
    ("claude", ".claude.json", '{"mcpServers": {"memd": {"command": "memctl", "args": ["mcp"]}}}', True),
    ("claude", ".claude.json", '{"projects": {"CWD": {"mcpServers": {"memd": {"command": "memctl"}}}}}', True),
    (
        "claude",
        ".claude.json",
        '{"projects": {"/else": {"mcpServers": {"memd": {"command": "memctl"}}}}}',
        False,
    ),
    ("claude", ".claude.json", '{"mcpServers": {"other": {"args": ["memd"]}}}', False),
    ("claude", "repo/.mcp.json", '{"mcpServers": {"memd": {"command": "memctl"}}}', True),
    ("claude", ".claude/settings.json", '{"enabledPlugins": {"memd@memd": true}}', True),
    ("claude", ".claude/settings.json", '{"enabledPlugins": {"memd@memd": false}}', False),
    ("codex", ".codex/config.toml", 'model = "x"\n[mcp_servers.memd]\ncommand = "memctl"\n', True),
    ("codex", ".codex/config.toml", '[ mcp_servers . "memd" ] # ours\ncommand = "memctl"\n', True),
    ("codex", ".codex/config.toml", "[mcp_servers.memd]\nenabled = false\n[x]\nenabled = true\n", False),
    ("codex", ".codex/config.toml", "# [mcp_servers.memd]\n[mcp_servers.memd2]\n", False),
    ("gemini", ".gemini/settings.json", '{\n // ours\n "mcpServers": {"memd": {"command": "memctl"}},}', True),
    ("gemini", ".gemini/settings.json", '{"mcpServers": {}}', False),
    ("kimi", ".kimi-code/mcp.json", '{"mcpServers": {"memd": {"command": "memctl"}}}', True),
    ("kimi", ".kimi-code/mcp.json", '{"mcpServers": {"memd": {"command": "memctl", "enabled": false}}}', False),
]


@pytest.mark.parametrize(("agent", "file", "text", "is_there"), ENTRIES)
def test_an_entry_is_found_where_the_agent_keeps_it(
    tmp_path: Path, agent: str, file: str, text: str, is_there: bool
) -> None:
    repo = tmp_path / "repo"
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    repo.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text.replace("CWD", str(repo)))
    assert entry.is_there(agent, str(repo), {"HOME": str(tmp_path)}) is is_there


def test_the_calls_are_the_tools_where_the_agent_has_the_entry_and_memctls_where_not(daemon: Daemon) -> None:
    saved(daemon)
    assert "memctl show" in hook(daemon, "claude", "prompt-submit", "prompt", PROMPT)
    (daemon.user / ".claude.json").write_text('{"mcpServers": {"memd": {"command": "memctl"}}}')
    text = hook(daemon, "claude", "prompt-submit", "prompt", PROMPT, session_id="two")
    assert "memory_read(name=" in text
    assert "memctl" not in text


def test_every_call_for_memctl_that_a_block_names_works_as_typed(daemon: Daemon) -> None:
    for number in range(12):
        daemon.save(f"forge-{number}", "Forge tests. " + "long words here " * 120)
    text = hook(daemon, "claude", "prompt-submit", "prompt", PROMPT)
    calls = set(re.findall(r"memctl (?:show|search|forget|save)(?: --?[a-z]+)*(?: [\w.-]+| \"[^\"]*\")", text))
    assert {call.split()[1] for call in calls} == {"show", "search", "forget", "save"}
    (daemon.repo / "FILE").write_text("---\nname: new\ndescription: A new one\ntype: user\n---\n\nBody\n")
    env = {**daemon.env, "PATH": path(), "MEMD_SESSION": "typed", "PYTHONPATH": str(ROOT)}
    for call in sorted(calls - {c for c in calls if "forget" in c}, key=len):
        words = shlex.split(call.replace('"name"', "forge-3").replace(" name", " forge-3"))
        done = subprocess.run(words, env=env, cwd=daemon.repo, capture_output=True, check=False, timeout=30)
        assert done.returncode == 0, (call, done.stderr)
    done = subprocess.run(["memctl", "forget", "--yes", "forge-3"], env=env, cwd=daemon.repo, check=False)
    assert done.returncode == 0
