"""`ledger backtest` as the eval framework is called, against servers on loopback; no key leaks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from console import contents, ledger, must
from servers.loopback import Loopback, Reply, serve
from servers.metaculus_server import TOKEN, path, post
from servers.openai_server import OpenAIServer, error_reply, serve_openai

from cli.spread import spread_values
from forecasting.accounts import EVIDENCE_COLUMNS

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
ANSWER = '{"rationale":"r","p_yes":0.25,"p_no":0.75}'
POSTS = (39523, 39575, 39476)
FILES = {
    "predictions.jsonl",
    "strategy_summary.csv",
    "leaderboard.md",
    "run_config_snapshot.json",
    "evidence.csv",
    "costs.csv",
    "calibration_nano_baseline.csv",
    "calibration_uniform.csv",
}
SEED_LINE = (
    *("backtest", "--post-ids", *POSTS),
    *("--context-file", "context.json", "--strategy-files", "nano.yaml"),
    *("--num-runs", 1, "--question-concurrency", 3, "--output-dir", "logs/evals"),
)
"""The framework's own example, with the program's name changed."""

STRATEGY = """\
id: nano_baseline
enabled: true
outside_view_enabled: true
inside_view_enabled: true
prediction_market_enabled: true
final_forecast_use_agent: true
env_overrides:
  LOG_ENABLE: "true"
"""


@dataclass
class World:
    """Both services, a folder with the inputs, and the environment that leads to them."""

    folder: Path
    models: OpenAIServer
    metaculus: Loopback
    env: dict[str, str]

    @property
    def run(self) -> Path:
        (found,) = (self.folder / "logs/evals").iterdir()
        return found

    def predictions(self) -> list[dict[str, Any]]:
        lines = (self.run / "predictions.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def rows(self, name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO((self.run / name).read_text())))


def context_row(post_id: int) -> dict[str, object]:
    return {
        "post_id": post_id,
        "title": f"Will bridge {post_id} open?",
        "type": "binary",
        "description": "About.",
        "resolution_criteria": "If so.",
        "fine_print": "Only so.",
        "metadata": {"source": "test"},
    }


@contextmanager
def services(folder: Path, **resolutions: Any) -> Iterator[World]:
    with serve_openai() as models, serve() as metaculus:
        models.text = ANSWER
        for index, post_id in enumerate(POSTS):
            changed = {"resolution": "yes" if index == 0 else "no", **resolutions}
            body = post(post_id, form="api2", **changed)
            metaculus.reply(path(post_id, "api2"), Reply(body))
        rows = [context_row(post_id) for post_id in POSTS]
        (folder / "context.json").write_text(json.dumps({"questions": rows}))
        (folder / "nano.yaml").write_text(STRATEGY)
        env = {
            "OPENROUTER_API_KEY": KEY,
            "OPENROUTER_BASE_URL": models.url,
            "METACULUS_TOKEN": TOKEN,
            "METACULUS_BASE_URL": metaculus.url,
        }
        yield World(folder, models, metaculus, env)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The framework's example, run once; tests read it and never write."""
    folder = tmp_path_factory.mktemp("seed")
    with services(folder) as world:
        must(*SEED_LINE, cwd=folder, env=world.env)
        yield world


def test_the_frameworks_command_line_works_with_the_name_changed(finished: World) -> None:
    assert {file.name for file in finished.run.iterdir()} >= FILES
    models = {request.document()["model"] for request in finished.models.arrived}
    assert models == {"openai/gpt-5-nano"}, "the nano model is enforced"


def test_one_row_a_strategy_and_question_with_the_frameworks_columns(finished: World) -> None:
    rows = finished.predictions()
    own = [row for row in rows if row["strategy_id"] == "nano_baseline"]
    assert [row["question_id"] for row in own] == [f"metaculus-{p}" for p in POSTS]
    assert [row["probability"] for row in own] == ["0.25"] * 3
    assert [row["brier"] for row in own] == [0.5625, 0.0625, 0.0625]
    assert {row["as_of_time"] for row in own} == {"2025-03-01T12:30:00.000000Z"}
    assert [row["label"] for row in own] == [1, 0, 0]
    assert all(row["error"] is None and row["model_calls"] == 3 for row in own)


def test_the_ranking_is_by_brier_then_log_then_ece_then_cost(finished: World) -> None:
    rows = finished.rows("strategy_summary.csv")
    assert [row["strategy_id"] for row in rows] == ["nano_baseline", "uniform"]
    keys = [(float(r["mean_brier"]), float(r["mean_log_loss"]), float(r["ece"])) for r in rows]
    assert keys == sorted(keys)
    assert "# Ranking by mean Brier" in (finished.run / "leaderboard.md").read_text()


def test_the_ledger_verifies_and_holds_no_secret(finished: World) -> None:
    done = must("verify", "--ledger", finished.run / "ledger.db", cwd=finished.folder)
    assert "unanchored" in done.out
    for name, data in contents(finished.run).items():
        for secret in (KEY, TOKEN):
            assert secret.encode() not in (data or b""), name


def test_labels_stay_out_of_every_prompt_and_of_the_plan(finished: World) -> None:
    for request in finished.models.arrived:
        assert b"resolved_on" not in request.body
        assert b"2025-06-12" not in request.body, "the day on which it resolved"
    assert "2025-06-12" not in (finished.run / "plan.yaml").read_text()


def test_the_crowds_price_reaches_the_model_only_if_it_was_public_at_as_of(
    finished: World,
) -> None:
    """The crowd of the example was revealed after the opening: there is no price."""
    assert json.loads((finished.run / "market_prices.json").read_text()) == []
    assert all(b"0.42" not in request.body for request in finished.models.arrived)


def test_a_replay_without_any_server_writes_the_same_files(finished: World) -> None:
    again = must(
        *("backtest", "--provider", "replay", "--ledger", finished.run / "ledger.db"),
        *("--output-dir", finished.folder / "again"),
        cwd=finished.folder,
    )
    assert "3 of 3 cells came out the same" in again.out
    (folder,) = (finished.folder / "again").iterdir()
    for file in folder.iterdir():
        assert file.read_bytes() == (finished.run / file.name).read_bytes(), file.name


def test_evidence_and_cost_are_read_from_the_ledger(finished: World) -> None:
    path_ = finished.run / "ledger.db"
    rows = must("evidence", "--json", "--ledger", path_, cwd=finished.folder).json
    assert rows == []
    costs = must("cost", "--by", "stage", "--json", "--ledger", path_, cwd=finished.folder).json
    assert [row["stage"] for row in costs] == [
        "outside_view",
        "inside_view",
        "market_prices",
        "final_forecast",
    ]
    assert sum(row["calls"] for row in costs) == 12
    refused = ledger("evidence", "--card", "nobody", "--ledger", path_, cwd=finished.folder)
    assert refused.code == 2


def test_a_failed_question_stays_in_every_mean_at_the_full_loss(tmp_path: Path) -> None:
    with services(tmp_path) as world:
        (tmp_path / "nano.yaml").write_text(
            "id: nano_baseline\nenabled: true\noutside_view_enabled: false\n"
            "inside_view_enabled: false\nfinal_forecast_use_agent: false\n"
        )
        world.models.replies.append(error_reply(400, None, "no"))
        must(*SEED_LINE, cwd=tmp_path, env=world.env)
        rows = world.predictions()
        failed = [row for row in rows if row["error"]]
        assert len(failed) == 1
        assert failed[0]["probability"] is None
        assert failed[0]["brier"] == 1.0
        assert failed[0]["error"].startswith("provider_error")
        (summary,) = [row for row in world.rows("strategy_summary.csv") if row["failed"] == "1"]
        assert summary["questions"] == "3"


def test_the_ceiling_ends_with_code_5_and_resume_ends_the_run(tmp_path: Path) -> None:
    with services(tmp_path) as world:
        # No price is known without a list, so that no ceiling can be kept: refused before a call.
        stopped = ledger(*SEED_LINE, "--max-cost", "0", cwd=tmp_path, env=world.env)
        assert stopped.code in {2, 5}
        assert len(world.models.arrived) == 0
        before = len(world.metaculus.seen)
        done = must(*SEED_LINE, "--resume", cwd=tmp_path, env=world.env)
        assert "going on with" in done.out
        assert len(world.metaculus.seen) == before, "labels are not pulled again"
        assert {file.name for file in world.run.iterdir()} >= FILES
        again = must(*SEED_LINE, "--resume", cwd=tmp_path, env=world.env)
        assert "wrote" in again.out, "a finished run writes its files once more and nothing else"


def test_resume_refuses_a_run_of_another_command_line(tmp_path: Path) -> None:
    with services(tmp_path) as world:
        must(*SEED_LINE, cwd=tmp_path, env=world.env)
        other = ledger(*SEED_LINE, "--resume", "--model", "gpt-5.4", cwd=tmp_path, env=world.env)
    assert other.code == 2
    assert "registers other methods" in other.err


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"status": "open", "resolution": None}, "not resolved"),
        ({"resolution": "maybe"}, "neither yes nor no"),
    ],
)
def test_it_fails_hard_where_the_framework_does(
    tmp_path: Path, changed: dict[str, object], words: str
) -> None:
    with services(tmp_path, **changed) as world:
        refused = ledger(*SEED_LINE, cwd=tmp_path, env=world.env)
        assert refused.code == 2
        assert words in refused.err
        assert not (tmp_path / "logs").exists(), "nothing is left behind"
        assert world.models.arrived == []


def test_a_missing_context_row_is_named_before_anything_is_pulled(tmp_path: Path) -> None:
    with services(tmp_path) as world:
        (tmp_path / "context.json").write_text(json.dumps([context_row(POSTS[0])]))
        refused = ledger(*SEED_LINE, cwd=tmp_path, env=world.env)
        assert refused.code == 2
        assert "no context row for post 39575" in refused.err
        assert world.metaculus.seen == []


def test_an_annulled_question_is_left_out_with_its_reason(tmp_path: Path) -> None:
    with services(tmp_path) as world:
        body = post(POSTS[1], form="api2", resolution="annulled")
        world.metaculus.reply(path(POSTS[1], "api2"), Reply(body))
        done = must(*SEED_LINE, cwd=tmp_path, env=world.env)
        assert "left out metaculus-39575: annulled" in done.out
        assert "metaculus-39575 (annulled)" in (world.run / "plan.yaml").read_text()


def test_a_search_over_a_dated_corpus_leaks_nothing_later(tmp_path: Path) -> None:
    documents = [
        {"title": "Before", "text": "bridge OLDNEWS", "published": "2025-02-01T08:00:00Z"},
        {"title": "After", "text": "bridge CANARY-AFTER", "published": "2025-06-13T08:00:00Z"},
        {"title": "Undated", "text": "bridge CANARY-UNDATED", "published": None},
        {"title": "Same day", "text": "bridge CANARY-DAY", "published": "2025-03-01"},
    ]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "d.jsonl").write_text("\n".join(map(json.dumps, documents)))
    with services(tmp_path) as world:
        must(*SEED_LINE, "--corpus", "corpus", cwd=tmp_path, env=world.env)
        bodies = b"".join(request.body for request in world.models.arrived)
        assert b"OLDNEWS" in bodies
        assert b"CANARY" not in bodies
        evidence = world.rows("evidence.csv")
        assert tuple(evidence[0]) == EVIDENCE_COLUMNS
        rules = {row["title"]: row["rule"] for row in evidence}
        assert rules["Before"] == "timebox/kept-text-undated"
        assert rules["Undated"] == "timebox/undated"
        assert rules["Same day"] == "timebox/same-day"
        listed = must(
            "evidence",
            "--card",
            "metaculus-39523",
            "--ledger",
            world.run / "ledger.db",
            cwd=tmp_path,
        )
        assert "timebox/undated: 1" in listed.out


def test_values_are_spread_as_argparse_does() -> None:
    names = {"--post-ids"}
    given = ["--post-ids", "1", "2", "-3", "--n", "4", "5", "--post-ids=6", "--", "--post-ids", "7"]
    assert list(spread_values(given, names)) == [
        *("--post-ids", "1", "--post-ids", "2", "--post-ids", "-3"),
        *("--n", "4", "5", "--post-ids=6", "--", "--post-ids", "7"),
    ]
