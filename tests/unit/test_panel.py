"""Which cards are scored and with what: what is missing, annulled, sealed or withheld."""

from __future__ import annotations

from typing import Any

import pytest
from replay_ledgers import Bench, constant, make_plan, method, plan_fields

from ledger.canonical import parse_strict
from ledger.events.call import AttemptFailed, AttemptStarted
from ledger.events.card import CardAnnulled, LabelRevised
from scoring.report import Report, build_report, report_files

LABELS = {"c1": "yes", "c2": "no", "c3": "yes"}
A = {"c1": "0.9", "c2": "0.2", "c3": "0.6"}
B = {"c1": "0.7", "c2": "0.3"}


def bench(*, sealed: bool = False, **changes: object) -> Bench:
    """Three cards; `a` predicts all, `b` lacks c3."""
    plan = make_plan(plan_fields(list(LABELS), [method("a"), method("b"), constant()], **changes))
    made = Bench(plan).freeze(LABELS).register().predict("a", A).predict("b", B).close()
    return made if sealed else made.unseal()


def report(made: Bench) -> Report:
    return build_report(made.session.store)


def files(made: Bench) -> dict[str, str]:
    found = report(made)
    return {
        name: b"".join(pieces).decode() for name, pieces in report_files(found, made.session.store)
    }


def rows(made: Bench, **wanted: str) -> list[dict[str, Any]]:
    found = report(made)
    lines = dict(report_files(found, made.session.store))["predictions.jsonl"]
    parsed = [parse(line) for line in lines]
    return [row for row in parsed if all(row[key] == value for key, value in wanted.items())]


def parse(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = parse_strict(line)
    return found


def test_complete_case_lists_the_card_that_left_and_why() -> None:
    scores = report(bench()).scores
    assert scores["cards"]["scored"] == 2
    assert scores["cards"]["excluded"] == {"c3": "no prediction from b (missing)"}
    for name in ("a", "b", "uniform"):
        assert scores["scores"][name]["n"] == 2
        assert scores["scores"][name]["n_imputed"] == 0
    assert scores["scores"]["b"]["missing"] == {"missing": 1}
    assert scores["scores"]["a"]["missing"] == {}
    assert scores["scores"]["a"]["brier"] == pytest.approx((0.01 + 0.04) / 2, abs=1e-15)
    page = files(bench())["leaderboard.md"]
    assert "| b | missing | 1 |" in page
    assert "| c3 | no prediction from b (missing) |" in page


@pytest.mark.parametrize(
    ("policy", "value", "p", "loss"),
    [("impute", "0.5", "0.5", 0.25), ("impute", "0.3", "0.3", 0.49), ("worst_case", None, "0", 1)],
)
def test_an_imputed_value_is_marked_everywhere(
    policy: str, value: str | None, p: str, loss: float
) -> None:
    made = bench(missing_predictions={"policy": policy, "value": value})
    scores = report(made).scores
    assert scores["cards"]["excluded"] == {}
    assert scores["cards"]["policy"] == policy
    assert scores["scores"]["b"]["n_imputed"] == 1
    assert scores["scores"]["b"]["missing"] == {"missing": 1}
    assert scores["scores"]["b"]["brier"] == pytest.approx((0.09 + 0.09 + loss) / 3, abs=1e-15)
    (row,) = rows(made, method="b", status="imputed")
    assert (row["card"], row["p_raw"], row["p_yes"]) == ("c3", None, p)
    assert row["status_reason"] == f"policy {policy}"
    (empty,) = rows(made, method="b", status="missing")
    assert (empty["p_yes"], empty["brier"], empty["status_reason"]) == (None, None, "not run")
    text = files(made)
    assert "3 (1 imputed)" in text["leaderboard.md"]
    assert ",1," in next(r for r in text["strategy_summary.csv"].splitlines() if ",b," in r)
    assert f"missing predictions: {policy}" in text["leaderboard.md"]


def test_a_missing_probability_is_never_one_half_of_itself() -> None:
    for policy in ("complete_case", "worst_case"):
        made = bench(missing_predictions={"policy": policy, "value": None})
        assert not rows(made, method="b", p_yes="0.5")


def test_an_imputed_branch_loss_says_so() -> None:
    made = bench(
        missing_predictions={"policy": "worst_case", "value": None},
        comparisons=[{"a": "b", "b": "a", "primary": True}],
    )
    (row,) = [r for r in report(made).scores["failure_anatomy"] if r["card"] == "c3"]
    assert row["imputed"] == ["b"]


def test_a_failed_attempt_counts_as_failed() -> None:
    plan = make_plan(
        plan_fields(list(LABELS), [method("a"), method("b", source="run"), constant()])
    )
    made = Bench(plan).freeze(LABELS).register().predict("a", A)
    cell: dict[str, Any] = {"method": "b", "card_id": "c1", "draw": 1, "attempt": 1}
    made.add(AttemptStarted(**cell))
    seq = made.session.state().size - 1
    made.add(AttemptFailed(**cell, started_seq=seq, reason="timeout", detail="no answer"))
    scores = report(made.close().unseal()).scores
    assert scores["scores"]["b"]["missing"] == {"failed": 1, "missing": 2}
    assert scores["attempts"] == {"started": 1, "failed": 1}
    assert scores["cards"]["excluded"]["c1"] == "no prediction from b (failed)"
    (row,) = rows(made, method="b", status="failed")
    assert row["status_reason"] == "timeout: no answer"


@pytest.mark.parametrize("reason", ["annulled", "ambiguous", "withdrawn", "invalid"])
def test_annulment_excludes_by_the_reasons_of_the_plan_alone(reason: Any) -> None:
    made = bench()
    made.add(CardAnnulled(card_id="c1", reason=reason, detail="It was.", authority="tests"))
    cards = report(made).scores["cards"]
    if reason in {"annulled", "ambiguous"}:
        assert cards["excluded"]["c1"] == reason
        assert cards["scored"] == 1
        (row,) = rows(made, method="a", card="c1")
        assert (row["excluded"], row["brier"]) == (reason, None)
    else:
        assert "c1" not in cards["excluded"]
        assert cards["scored"] == 2


def test_a_revision_supersedes() -> None:
    made = bench()
    seq = made.session.state().cards["c1"].label_seq
    assert seq is not None
    before = report(made).scores["scores"]["a"]["brier"]
    made.add(
        LabelRevised(
            card_id="c1", supersedes_seq=seq, resolution="no", reason="Recount.", authority="tests"
        )
    )
    after = report(made).scores["scores"]["a"]["brier"]
    assert (before, after) == (pytest.approx(0.025), pytest.approx((0.81 + 0.04) / 2))
    (row,) = rows(made, method="a", card="c1")
    assert (row["label"], row["brier"]) == ("no", "0.81")


def test_sealed_labels_give_no_score_and_no_crash() -> None:
    made = bench(sealed=True)
    scores = report(made).scores
    assert scores["cards"]["excluded"] == dict.fromkeys(LABELS, "label withheld: still sealed")
    for row in scores["scores"].values():
        assert row["n"] == 0
        assert [row[k] for k in ("brier", "log", "ece", "mce", "auc", "mcb", "murphy")] == [
            None
        ] * 7
    (pair,) = scores["paired"]
    assert pair["n"] == 0
    for name in ("mean_difference", "sign", "bootstrap", "permutation_p", "wilcoxon_p", "paired_t"):
        assert pair[name] is None
    assert pair["decision"]["significant"] is None
    assert scores["multiplicity"]["tests"]["sign"]["raw"] == [None] * 3
    text = files(made)
    assert "Not computable: no card is scored." in text["leaderboard.md"]
    assert all(row["brier"] is None for row in rows(made))
    assert all(row["label"] is None for row in rows(made))


def test_cards_without_a_binary_label_are_not_scored() -> None:
    plan = make_plan(plan_fields(["d1"], [method("a"), constant()]))
    made = Bench(plan).freeze({"d1": ""}, kind="dossier").register().predict("a", {"d1": "0.4"})
    scores = report(made.close()).scores
    assert scores["cards"]["excluded"] == {"d1": "kind dossier: no binary label"}
    assert scores["scores"]["a"]["n"] == 0


def test_a_redacted_prediction_is_withheld_and_said_so() -> None:
    made = bench()
    seq = made.session.state().cells[("a", "c1", 1)][0]  # type: ignore[index]
    made.session.redact(seq, reason="Personal data.", authority="tests")
    scores = report(made).scores
    assert scores["withheld_events"] == [seq]
    assert scores["scores"]["a"]["missing"] == {"withheld": 1}
    assert scores["cards"]["excluded"]["c1"] == "no prediction from a (withheld)"
    (row,) = rows(made, method="a", card="c1")
    assert (row["status"], row["p_yes"], row["frozen_seq"]) == ("withheld", None, seq)
    text = files(made)
    assert "| a | withheld | 1 |" in text["leaderboard.md"]
    assert "1 events of the log are redacted." in text["leaderboard.md"]
    (audit,) = [r for r in text["audit_vectors.csv"].splitlines() if r.startswith("c1,a,")]
    assert ",withheld," in audit


def seq_of(made: Bench, name: str, card: str) -> int:
    found = [
        record.seq
        for record in made.session.store.read()
        if record.type == name and record.fields["stream"].endswith(f"/{card}")
    ]
    return found[-1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("label.unsealed", "label withheld: label.unsealed redacted"),
        ("label.revised", "label withheld: label.revised redacted"),
        ("card.annulled", "label withheld: card.annulled redacted"),
        ("card.frozen", "card withheld: redacted"),
    ],
)
def test_what_decides_a_card_and_is_redacted_withholds_the_card(name: str, reason: str) -> None:
    made = bench()
    label_seq = made.session.state().cards["c1"].label_seq
    assert label_seq is not None
    made.add(
        LabelRevised(
            card_id="c1", supersedes_seq=label_seq, resolution="no", reason="So.", authority="t"
        )
    )
    made.add(CardAnnulled(card_id="c1", reason="withdrawn", detail="So.", authority="t"))
    made.session.redact(seq_of(made, name, "c1"), reason="Personal data.", authority="tests")
    assert report(made).scores["cards"]["excluded"]["c1"] == reason
    assert files(made)["audit_vectors.csv"].count("c1,") == 3
