"""`ledger questions import`: foreign sets become packs that the other commands take."""

from __future__ import annotations

import json
from pathlib import Path

from console import ledger, must

from cards.pack import LABELS_FILE, load_pack

DUE = "2025-03-30"


def forecastbench(folder: Path) -> None:
    """One market question of two, and its resolution; all content made up."""
    row = {
        "id": "abc",
        "source": "manifold",
        "question": "Will the bridge open?",
        "resolution_criteria": "Yes if it opens.",
        "background": "It is being built.",
        "market_info_open_datetime": "2025-01-01T00:00:00Z",
        "market_info_close_datetime": "2025-12-31T23:59:59Z",
        "market_info_resolution_criteria": "N/A",
        "url": "https://example.org/abc",
        "freeze_datetime": "2025-03-20T00:00:00+00:00",
        "freeze_datetime_value": "0.4",
        "freeze_datetime_value_explanation": "The market value.",
        "source_intro": "A market.",
        "resolution_dates": "N/A",
    }
    questions = {
        "forecast_due_date": DUE,
        "question_set": f"{DUE}-llm.json",
        "questions": [row, {**row, "id": "open"}],
    }
    outcome = {"source": "manifold", "direction": None, "resolution_date": "2025-06-30"}
    resolutions = {
        "forecast_due_date": DUE,
        "question_set": f"{DUE}-llm.json",
        "resolutions": [
            {**outcome, "id": "abc", "resolved_to": 1.0, "resolved": True},
            {**outcome, "id": "open", "resolved_to": 0.3, "resolved": False},
        ],
    }
    (folder / "questions.json").write_text(json.dumps(questions))
    (folder / "resolutions.json").write_text(json.dumps(resolutions))


def test_a_forecastbench_set_becomes_a_pack_that_a_backtest_takes(tmp_path: Path) -> None:
    forecastbench(tmp_path)
    done = must(
        *("questions", "import", "forecastbench", "--file", "questions.json"),
        *("--labels", "resolutions.json", "--out", "set"),
        cwd=tmp_path,
    )
    assert "unresolved" in done.out
    assert "wrote 1 cards and 1 labels" in done.out
    pack = load_pack(tmp_path / "set")
    assert [card.private is not None for card in pack.cards] == [True]
    assert (tmp_path / "set" / LABELS_FILE).stat().st_mode & 0o077 == 0
    assert "0.4" not in (tmp_path / "set/cards" / f"{pack.cards[0].source.id}.yaml").read_text()
    ran = must(
        *("backtest", "--pack", "./set", "--baseline", "direct_json", "--provider", "scripted"),
        cwd=tmp_path,
    )
    assert "wrote predictions.jsonl" in ran.out


def test_a_set_without_resolutions_is_no_pack(tmp_path: Path) -> None:
    forecastbench(tmp_path)
    refused = ledger(
        *("questions", "import", "forecastbench", "--file", "questions.json", "--out", "set"),
        cwd=tmp_path,
    )
    assert refused.code == 2
    assert "has no label" in refused.err
    assert not (tmp_path / "set").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    forecastbench(tmp_path)
    (tmp_path / "set").mkdir()
    refused = ledger(
        *("questions", "import", "forecastbench", "--file", "questions.json"),
        *("--labels", "resolutions.json", "--out", "set"),
        cwd=tmp_path,
    )
    assert refused.code == 2
    assert list((tmp_path / "set").iterdir()) == []


def test_the_list_of_models_says_what_is_missing_and_shows_no_key(tmp_path: Path) -> None:
    key = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
    (tmp_path / ".env").write_text(f'# keys\nexport OPENAI_API_KEY="{key}"\n')
    rows = must("models", "list", "--json", cwd=tmp_path).json
    needs = {row["provider"]: row["needs"] for row in rows}
    assert needs["openai"] is None
    assert needs["openrouter"] == "OPENROUTER_API_KEY"
    assert key not in json.dumps(rows)
    (tmp_path / ".env").write_text("NO SECRET HERE")
    refused = ledger("models", "list", cwd=tmp_path)
    assert refused.code == 2
    assert "SECRET" not in refused.err
