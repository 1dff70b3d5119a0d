"""A run is killed at random instants and resumed: the same cells, and nothing asked twice.

The real command runs as a process against a server on loopback that keeps a log of its calls. The
seed of the instants is part of each message.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from console import SCRIPT, clean_environment, must
from run_examples import NO_AGENT, opened, payloads, prepare, question
from servers.openai_server import OpenAIServer, serve_openai
from store_examples import make_sqlite, open_sqlite

from forecasting.backtest import RunSetup, baseline_method, strategy_method
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy

QUESTIONS = 40
KILLS = 8
SEED = "kill-1"
SETUP = RunSetup(provider="openai", route="chat.completions", model="gpt-5.4")
KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
ANSWER = '{"rationale":"r","p_yes":0.25,"p_no":0.75}'


def make_ledger(path: Path) -> None:
    """Forty questions, a pipeline of three calls and a direct baseline, ready to run."""
    store = make_sqlite(path, draft_event(opened(), actor="tester"))
    methods = [strategy_method(NO_AGENT, SETUP), baseline_method("direct_json", SETUP)]
    prepare(store, [question(f"q{i:02}") for i in range(QUESTIONS)], methods)
    store.close()


def start(folder: Path, server: OpenAIServer) -> subprocess.Popen[bytes]:
    """Start `ledger run` with everything that it takes from outside."""
    command = [str(SCRIPT), "run", "--resume", "--question-concurrency", "6", "--ledger", "run.db"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def environment(server: OpenAIServer) -> Mapping[str, str]:
    return clean_environment({"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY})


def answered(path: Path) -> set[bytes]:
    """The bodies of the calls whose answers the ledger holds."""
    store = open_sqlite(path)
    try:
        calls = payloads(store, "model.called")
    finally:
        store.close()
    return {c.raw_request.data.encode() for c in calls if c.outcome == "answered"}


def wait_for_calls(server: OpenAIServer, run: subprocess.Popen[bytes], count: int) -> None:
    """Wait until so many more calls have arrived, or the run is over."""
    target = len(server.arrived) + count
    while len(server.arrived) < target and run.poll() is None:
        time.sleep(0.002)


def test_a_killed_run_is_completed_and_no_answered_call_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    make_ledger(path)
    entropy = SeededEntropy(SEED)
    kills = 0
    with serve_openai() as server:
        server.text = ANSWER
        server.delay_s = 0.01
        while True:
            known, before = answered(path), len(server.arrived)
            run = start(tmp_path, server)
            if kills < KILLS:
                # After a number of calls rather than of seconds: it falls anywhere in a cell.
                wait_for_calls(server, run, entropy(1)[0] % 24)
                run.kill()
            out, _ = run.communicate(timeout=120)
            repeated = known & {request.body for request in server.arrived[before:]}
            assert not repeated, f"seed {SEED}, after kill {kills}"
            if run.returncode == 0:
                break
            assert run.returncode == -signal.SIGKILL, out
            kills += 1
        arrivals = len(server.arrived)
    store = open_sqlite(path)
    calls, frozen = payloads(store, "model.called"), payloads(store, "prediction.frozen")
    attempts = payloads(store, "attempt.started")
    store.close()
    assert kills == KILLS
    cells = {(p.method, p.card_id, p.draw) for p in frozen}
    assert len(cells) == len(frozen) == QUESTIONS * 2
    assert len(attempts) == QUESTIONS * 2, "an open attempt is resumed, not started again"
    assert len(calls) == QUESTIONS * 4
    # What was in flight, or answered and not yet on disk, was asked in vain; nothing else was.
    assert arrivals - len(calls) <= 12 * KILLS
    must("verify", "--ledger", path, cwd=tmp_path)


def test_an_interrupt_ends_in_a_sentence_and_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    make_ledger(path)
    with serve_openai() as server:
        server.text = ANSWER
        server.delay_s = 0.02
        run = start(tmp_path, server)
        wait_for_calls(server, run, 20)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=60)
        assert run.returncode == 130, out
        assert b"interrupted" in out
        assert KEY.encode() not in out
        done = must(
            "run",
            "--resume",
            "--question-concurrency",
            "6",
            cwd=tmp_path,
            env={"LEDGER": str(path), "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY},
        )
        assert "0 failed" in done.out
    store = open_sqlite(path)
    assert len(payloads(store, "prediction.frozen")) == QUESTIONS * 2
    assert KEY.encode() not in path.read_bytes()
    store.close()


def test_open_attempts_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    make_ledger(path)
    with serve_openai() as server:
        server.text = ANSWER
        server.delay_s = 0.02
        run = start(tmp_path, server)
        wait_for_calls(server, run, 10)
        run.kill()
        run.communicate(timeout=60)
        refused = subprocess.run(
            [SCRIPT, "run", "--ledger", "run.db"],
            cwd=tmp_path,
            env=environment(server),
            capture_output=True,
            text=True,
            check=False,
        )
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
