"""Key-shaped runs: what is found, what is only warned of, what a mask leaves, and what no note is refused for."""

import json
import time
from pathlib import Path

import pytest

from memd import draft, secrets

CLEAN = Path(__file__).parent.parent / "data" / "clean_notes.jsonl"
NOTES: list[str] = [json.loads(line)["markdown"] for line in CLEAN.read_text("utf-8").splitlines() if line]

TAIL = "q1W2e3R4t5Y6u7I8o9P0a1S2"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{TAIL}"

RUNS = [
    ("sk-", f"sk-{TAIL}"),
    ("sk-", "sk-ab12ab12ab12ab12"),
    ("sk-", "sk-123456789-abcdefgh"),
    ("sk-", f"sk-ant-api03-{TAIL}"),
    ("sk-", "sk-e89b-12d3-a456-4266"),
    ("sk-", "sk-test-a1b2-c3d4-e5f6"),
    ("sk-", "sk-words-and-more-a1b2c3"),
    ("sk-", "sk-Some-words-and-2024"),
    ("ghp_", f"ghp_{TAIL}"),
    ("gho_", f"gho_{TAIL}"),
    ("ghu_", f"ghu_{TAIL}"),
    ("ghs_", f"ghs_{TAIL}"),
    ("ghr_", f"ghr_{TAIL}"),
    ("github_pat_", f"github_pat_11ABC_{TAIL}"),
    ("AKIA", "AKIAABCDEFGH12345678"),
    ("glpat-", f"glpat-{TAIL}"),
    ("xox[abprs]-", f"xoxb-123456789012-{TAIL}"),
    ("xox[abprs]-", f"xoxp-{TAIL}"),
    ("AIza", f"AIza{TAIL}"),
    ("hf_", f"hf_{TAIL}"),
    ("npm_", f"npm_{TAIL}"),
    ("sk_live_", f"sk_live_{TAIL}"),
    ("rk_live_", f"rk_live_{TAIL}"),
    ("jwt", JWT),
]


@pytest.mark.parametrize(("kind", "run"), RUNS)
@pytest.mark.parametrize("around", ["{}", "x\nkey={}\ny", "密钥{}密钥", "({}).", '"{}"', "/{}/"])
def test_finds_the_run_and_only_it(kind: str, run: str, around: str) -> None:
    text = around.format(run)
    (found,) = secrets.scan(text)
    assert (found.kind, text[found.start : found.end]) == (kind, run)
    assert found.line == text[: found.start].count("\n") + 1
    assert secrets.redact(text) == around.format("[redacted]")


@pytest.mark.parametrize(("kind", "run"), RUNS)
@pytest.mark.parametrize("before", ["a", "7", "_", "-"])
def test_a_run_inside_a_token_is_none(kind: str, run: str, before: str) -> None:
    text = before + run
    assert all(found.kind != kind for found in secrets.scan(text))


@pytest.mark.parametrize(
    "text",
    [
        "sk-1234-fix-flaky-upload-test",
        "sk-12345678-fix_flaky_upload_2",
        "sk-1301-add-v2-endpoint",
        "sk-77-move-to-py311--and-k8s_now",
        "sk-abcdefghijklmnopqrstuvwxyz",
        "sk-a1b2c3d4e5f6g7h",  # one short of 16
        "ghp_a1b2c3d4e5f6g7h8i9j",  # one short of 20
        "ghp_abcdefghijklmnopqrstuvwx",  # no digit
        "ghp_rate-limit-2024-and-more-notes",
        "AKIAABCDEFGH1234567",
        "npm_config_fetch_retries_2_mintimeout",
        "npm_config_React18_path_to_2x_cache",
        "hf_hub_download_v2_of_the_model",
        "github_pat_rotation_2024_checklist",
        "eyJhbGciOiJIUzI1NiJ9",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "PRIVATE KEY",
    ],
)
def test_is_no_key(text: str) -> None:
    assert secrets.scan(text) == []
    assert secrets.redact(text) is text


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("postgres://app:s3cretpw@db.example.org/x", "s3cretpw"),
        ("redis://:hunter2@cache:6379", "hunter2"),
        ("https://bob:p@ss@example.org", "p@ss"),
        ("amqp://a:$ecret(1)@mq/vhost", "$ecret(1)"),
        ("HTTP://u:pw@h", "pw"),
    ],
)
def test_a_password_in_a_url(url: str, password: str) -> None:
    (found,) = secrets.scan(f"see {url} there")
    assert (found.kind, url[found.start - 4 : found.end - 4]) == ("url password", password)
    assert secrets.redact(url) == url.replace(password, "[redacted]")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080/@scope/pkg",
        "http://localhost:8080?u=a@b",
        "http://localhost:8080#a@b",
        "ssh://git@example.org:22/x.git",
        "git@example.org:team/repo.git",
        "docker://alpine:3.18@sha256:2348f998744212575d85959674f9607a",
        "postgres://app:$PGPASSWORD@db/x",
        "postgres://app:${PGPASSWORD}@db/x",
        "postgres://app:$(cat pw)@db/x",
        "postgres://app:<password>@db/x",
        "postgres://app:{{ password }}@db/x",
        "postgres://app:{password}@db/x",
        "postgres://app:%PASSWORD%@db/x",
        "postgres://app:***@db/x",
        "postgres://app:xxx@db/x",
        "postgres://app:...@db/x",
        "postgres://app:[redacted]@db/x",
        '"http://a:80", "b@c"',
        "://a:b@c",
    ],
)
def test_no_password_in_a_url(url: str) -> None:
    assert secrets.scan(url) == []


B64 = "MIIEpAIBAAKCAQEAq1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8"
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"a\n{BEGIN}\n{B64}\nshort==\n{END}\nb", "a\n[redacted]\nb"),
        (f"a {BEGIN}\\n{B64}\\n{END}\\n b", "a [redacted]\\n b"),
        (f"a\n{BEGIN}\n{B64}\n{B64}\nshort\n\nprose.", "a\n[redacted]\n\nprose."),
        (f"> {BEGIN}\n> {B64}\n> {B64}\nprose here", "> [redacted]\nprose here"),
        (
            f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{B64}\nThe rest.",
            "[redacted]\nThe rest.",
        ),
        (f"{BEGIN} marks one; {END} ends it", "[redacted] ends it"),
        ("it begins -----BEGIN PRIVATE KEY-----, see there", "it begins [redacted], see there"),
        (f"{BEGIN}\n{B64}\n{BEGIN}\n{B64}\n{END}\nb", "[redacted]\n[redacted]\nb"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n", "[redacted]\n"),
        ("OPENSSH PRIVATE KEY-----", "OPENSSH [redacted]"),
    ],
)
def test_masks_a_private_key_to_its_end(text: str, masked: str) -> None:
    assert {found.kind for found in secrets.scan(text)} == {"private key"}
    assert secrets.redact(text) == masked


def test_a_run_inside_a_private_key_is_masked_with_it() -> None:
    text = f"{BEGIN}\nAKIAABCDEFGH12345678\n{END}"
    assert [found.kind for found in secrets.scan(text)] == ["private key", "AKIA"]
    assert secrets.redact(text) == "[redacted]"


def test_overlapping_runs_are_masked_once() -> None:
    text = f"https://x:ghp_{TAIL}@github.com and sk-{TAIL}"
    assert [found.kind for found in secrets.scan(text)] == ["ghp_", "url password", "sk-"]
    assert secrets.redact(text) == "https://x:[redacted]@github.com and [redacted]"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("sk-short1", ["sk-"]),
        ("sk-1234-fix-flaky-upload-test", ["sk-"]),
        ("ghp_abc123, ghp_x9 and AKIA12", ["ghp_", "AKIA"]),
        ("github_pat_2024_plan", ["github_pat_"]),
        ("sk-learn and ghp_ and AKIAAAA", []),
        ("disk-1 task-5678-sk-2", []),
        ("密sk-1", ["sk-"]),
        (f"sk-{TAIL}", []),  # refused, not warned of
        ("gho_abc123", []),
    ],
)
def test_warns_of_what_only_the_bare_rule_sees(text: str, kinds: list[str]) -> None:
    assert secrets.warn_kinds(text) == kinds


WORST = {
    "prefixes": "sk-" * 350_000,
    "edges": "sk- " * 260_000,
    "one run": "sk-" + "a" * 1_000_000 + "1",
    "words": "sk-" + "a-" * 500_000 + "B1",
    "begins": BEGIN * 33_000,
    "bodies": (BEGIN + "\n" + "A" * 24 + "\n") * 18_000,
    "ends": "PRIVATE KEY-----" + END * 34_000,
    "tokens": "eyJaaaaaaaa." * 87_000,
    "schemes": "a://" * 260_000,
    "colons": "a://" + ":" * 1_000_000,
    "ats": "a://b:" + "@sha1:" * 170_000,
}


@pytest.mark.parametrize("case", WORST)
def test_a_mebibyte_of_anything_is_scanned_at_once(case: str) -> None:
    start = time.perf_counter()
    secrets.redact(WORST[case])
    secrets.warn_kinds(WORST[case])
    assert time.perf_counter() - start < 5


def test_there_are_two_hundred_clean_notes() -> None:
    assert len(set(NOTES)) == 200


@pytest.mark.parametrize("markdown", NOTES)
def test_no_clean_note_is_refused(markdown: str) -> None:
    draft.draft(markdown, {})
    assert secrets.scan(markdown) == []
