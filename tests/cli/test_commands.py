"""Every command once, as a new user meets it: in order, from an empty folder to a proof."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from console import METHODS, PILOT, Stage, contents, is_one_sentence, ledger, must

from cli.commands.doctor import PROVIDER_KEYS
from ledger.checkpoint import open_checkpoint
from ledger.merkle import check_inclusion
from ledger.signed_note import parse_verifier_key


def test_init_makes_a_ledger_and_a_private_key(tmp_path: Path) -> None:
    run = must("init", "--origin", "example.org/mine", cwd=tmp_path)
    assert (tmp_path / "ledger.key").stat().st_mode & 0o777 == 0o600
    assert sorted(contents(tmp_path)) == ["ledger.db", "ledger.key"]
    printed = re.search(r"verifier key to publish: (\S+)", run.out)
    assert printed is not None
    assert parse_verifier_key(printed[1]).name == "example.org/mine"


def test_init_replaces_nothing(stage: Stage) -> None:
    folder = stage("opened")
    before = contents(folder)
    run = ledger("init", cwd=folder)
    assert run.code == 2
    assert is_one_sentence(run.err)
    assert contents(folder) == before


def test_the_ledger_is_named_by_option_or_environment(tmp_path: Path) -> None:
    must("init", "--ledger", "a.db", cwd=tmp_path)
    must("init", cwd=tmp_path, env={"LEDGER": "b.db"})
    assert sorted(contents(tmp_path)) == ["a.db", "a.key", "b.db", "b.key"]
    logs = [must("log", "--json", "--ledger", f"{n}.db", cwd=tmp_path).json for n in "ab"]
    assert [len(rows) for rows in logs] == [1, 1]
    assert ledger("log", cwd=tmp_path, env={"LEDGER": "b.db"}).code == 0


def test_doctor_checks_the_installation_and_shows_no_key(tmp_path: Path) -> None:
    secret = "not-a-real-secret"  # noqa: S105 - looked for in the output
    report = must("doctor", "--json", cwd=tmp_path, env={PROVIDER_KEYS[0]: secret})
    assert report.json["ok"]
    assert all(check["ok"] for check in report.json["checks"])
    assert report.json["keys"][PROVIDER_KEYS[0]] is True
    assert secret not in report.out + must("doctor", cwd=tmp_path, env={"X": secret}).out
    assert contents(tmp_path) == {}


def test_cards_are_listed_shown_and_linted(tmp_path: Path) -> None:
    packs = must("cards", "list", "--json", cwd=tmp_path).json
    assert {key: packs[0][key] for key in ("pack", "cards")} == {
        "pack": "worldfork_pilot",
        "cards": 24,
    }
    cards = must("cards", "list", "worldfork_pilot", "--json", cwd=tmp_path).json
    assert [row["card"] for row in cards] == [f"{n:03d}" for n in range(1, 25)]
    card = must("cards", "show", "worldfork_pilot", "005", "--json", cwd=tmp_path).json
    assert card["card_id"] == "005"
    assert not {"resolution", "forbidden", "private"} & set(card)
    findings = must("cards", "lint", "worldfork_pilot", "--json", cwd=tmp_path).json
    assert all(finding["rule"] for finding in findings)
    for command in (("list",), ("show", "worldfork_pilot", "005"), ("lint", "worldfork_pilot")):
        assert must("cards", *command, cwd=tmp_path).out


def test_freezing_sealing_and_registering_are_events(stages: dict[str, Path]) -> None:
    counts = {
        name: len(must("log", "--json", cwd=stages[name]).json)
        for name in ("opened", "frozen", "sealed", "planned", "imported")
    }
    assert counts == {"opened": 1, "frozen": 25, "sealed": 49, "planned": 50, "imported": 194}
    assert (stages["sealed"] / "vault.db").stat().st_mode & 0o777 == 0o600


def test_the_ledger_of_sealed_labels_does_not_hold_them(stages: dict[str, Path]) -> None:
    """A sealed label's salt and bytes are in the vault and not in the ledger."""
    with sqlite3.connect(stages["closed"] / "vault.db") as vault:
        rows = vault.execute("SELECT salt, private_json FROM labels").fetchall()
    vault.close()
    data = (stages["closed"] / "ledger.db").read_bytes()
    assert len(rows) == 24
    assert not any(salt in data or private in data for salt, private in rows)


def test_sealing_goes_on_after_an_interrupted_try(stage: Stage) -> None:
    """The vault is written first: what it holds already is used by the next try."""
    frozen, sealed = stage("frozen"), stage("sealed")
    (frozen / "vault.db").write_bytes((sealed / "vault.db").read_bytes())
    (frozen / "vault.db").chmod(0o600)
    must("seal", "worldfork_pilot", cwd=frozen)
    assert (frozen / "vault.db").read_bytes() == (sealed / "vault.db").read_bytes()
    for command in (("preregister", PILOT / "plan.yaml"), ("close", "--missing", "a rehearsal")):
        must(*command, cwd=frozen)
    assert "opened 24 labels" in must("unseal", cwd=frozen).out


def test_the_same_predictions_twice_add_nothing(stage: Stage) -> None:
    folder = stage("imported")
    before = must("log", cwd=folder).out
    run = must("predictions", "import", PILOT / "predictions.csv", cwd=folder)
    assert "froze 0 predictions; 144 were frozen already" in run.out
    assert must("log", cwd=folder).out == before


def test_an_amended_plan_names_what_it_replaces(stage: Stage) -> None:
    folder = stage("planned")
    plan = (PILOT / "plan.yaml").read_text(encoding="utf-8").replace("replayed", "replayed again")
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    out = must("amend", "plan.yaml", "--reason", "the title was incomplete", cwd=folder).out
    assert "it replaces event 49" in out
    shown = must("show", "50", "--json", cwd=folder).json
    assert shown["payload"]["amends_seq"] == 49
    assert shown["payload"]["reason"] == "the title was incomplete"


def test_a_checkpoint_is_signed_by_the_ledgers_key(stage: Stage) -> None:
    folder = stage("closed")
    must("checkpoint", "--out", "head.txt", cwd=folder)
    text = (folder / "head.txt").read_text(encoding="utf-8")
    key = must("show", "0", "--json", cwd=folder).json["payload"]["verifier_keys"][0]
    opened = open_checkpoint(text, [parse_verifier_key(key)])
    assert (opened.origin, opened.size) == ("example.org/pilot", 195)
    assert must("checkpoint", cwd=folder).out == text


def test_a_checkpoint_replaces_only_an_older_one(stage: Stage) -> None:
    folder = stage("closed")
    must("checkpoint", "--out", "head.txt", cwd=folder)
    must("unseal", cwd=folder)
    must("checkpoint", "--out", "head.txt", cwd=folder)
    assert "\n219\n" in (folder / "head.txt").read_text(encoding="utf-8")
    before = contents(folder)
    for target in ("ledger.db", "vault.db"):
        run = ledger("checkpoint", "--out", target, cwd=folder)
        assert run.code == 2
        assert "is not a checkpoint" in run.err
    assert contents(folder) == before


def test_a_foreign_key_signs_no_checkpoint(stage: Stage) -> None:
    folder = stage("opened")
    must("init", "--ledger", "other.db", cwd=folder)
    run = ledger("checkpoint", "--key", "other.key", cwd=folder)
    assert run.code == 2
    assert "is not one of this ledger's keys" in run.err


def test_annulled_and_revised_cards_stay_in_the_log(stage: Stage) -> None:
    folder = stage("unsealed")
    must("annul", "003", "--reason", "ambiguous", "--detail", "two sources differ", cwd=folder)
    must("revise", "004", "--resolution", "no", "--reason", "the source corrected", cwd=folder)
    rows = must("log", "--json", "--start", "219", cwd=folder).json
    assert [row["type"] for row in rows] == ["card.annulled", "label.revised"]
    scores = must("replay", "--json", cwd=folder).json
    assert scores["cards"]["excluded"] == {"003": "ambiguous"}
    assert scores["scores"]["wf_branch"]["n"] == 23


def test_a_report_is_published_and_counted(stage: Stage) -> None:
    folder = stage("unsealed")
    assert "report published" in must("report", "--out", "tables", cwd=folder).out
    assert (folder / "tables" / "scores.json").is_file()
    assert must("log", "--json", "--type", "report.published", cwd=folder).json[0]["seq"] == 219
    scores = must("replay", "--json", cwd=folder).json
    assert scores["looks"]["published_reports"] == 1


def test_an_exploratory_comparison_is_marked(stage: Stage) -> None:
    folder = stage("unsealed")
    scores = must("replay", "--json", "--compare", "uniform:ai_prophet", cwd=folder).json
    extra = [pair for pair in scores["paired"] if pair["status"] == "exploratory"]
    assert [(pair["a"], pair["b"]) for pair in extra] == [("uniform", "ai_prophet")]
    assert scores["looks"]["exploratory"] == 1


def test_log_filters_and_streams_json(stages: dict[str, Path]) -> None:
    folder = stages["unsealed"]
    assert len(must("log", cwd=folder).out.splitlines()) == 219
    rows = must("log", "--json", "--start", "1", "--stop", "3", cwd=folder).json
    assert [row["seq"] for row in rows] == [1, 2]
    assert must("log", "--json", "--type", "no.such", cwd=folder).json == []


def test_show_prints_envelope_and_payload(stages: dict[str, Path]) -> None:
    shown = must("show", "49", "--json", cwd=stages["planned"]).json
    assert shown["envelope"]["type"] == "plan.preregistered"
    assert shown["payload"]["plan"]["plan_id"] == "worldfork_pilot"
    assert not shown["withheld"]
    assert "plan.preregistered" in must("show", "49", cwd=stages["planned"]).out


@pytest.mark.parametrize("seq", [0, 1, 100, 218])
def test_a_proof_proves_membership(stages: dict[str, Path], seq: int) -> None:
    """RFC 9162 section 2.1.3: the proof leads from the leaf to the root of the tree."""
    proof = must("prove", seq, "--json", cwd=stages["unsealed"]).json
    assert (proof["leaf_index"], proof["tree_size"]) == (seq, 219)
    path = [bytes.fromhex(node) for node in proof["proof"]]
    leaf, root = bytes.fromhex(proof["leaf_hash"]), bytes.fromhex(proof["root"])
    assert check_inclusion(seq, 219, leaf, path, root)
    assert not check_inclusion(seq, 219, bytes(32), path, root)
    assert proof["root"] in must("prove", seq, cwd=stages["unsealed"]).out


def test_redaction_deletes_the_payload_and_keeps_the_chain(stage: Stage) -> None:
    folder = stage("unsealed")
    secret = json.dumps(must("show", "100", "--json", cwd=folder).json["payload"]["p_yes"])
    must("redact", "100", "--reason", "holds a name", "--authority", "the board", cwd=folder)
    shown = must("show", "100", "--json", cwd=folder).json
    assert (shown["payload"], shown["withheld"]) == (None, True)
    assert secret
    assert "withheld" in must("show", "100", cwd=folder).out
    assert must("log", "--json", "--start", "219", cwd=folder).json[0]["actor"] == "operator"
    assert must("replay", "--json", cwd=folder).json["withheld_events"] == [100]


def test_the_actor_comes_from_the_environment(tmp_path: Path) -> None:
    must("init", cwd=tmp_path, env={"LEDGER_ACTOR": "alice"})
    assert must("log", "--json", cwd=tmp_path).json[0]["actor"] == "alice"


def test_replay_prints_the_methods_best_first(stages: dict[str, Path]) -> None:
    lines = must("replay", cwd=stages["unsealed"]).out.splitlines()
    assert lines[0].split() == ["method", "n", "Brier", "log", "ECE", "AUC"]
    assert sorted(line.split()[0] for line in lines[1:8]) == sorted(METHODS)
    brier = [float(line.split()[2]) for line in lines[1:8]]
    assert brier == sorted(brier)
