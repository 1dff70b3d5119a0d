"""Replay of a million frozen predictions: wall time and peak memory of `build_report`.

Run: python -m benchmarks.replay [--shape draws|cards|both]

Builds a ledger in a temporary folder through `SqliteStore.append` (real envelopes, salts and
commitments, labels sealed and opened) and measures in a fresh process each:

    replay   `build_report`: every hash checked, every score, test, interval and correction
    twin     the bare minimum for the same rows: SELECT the prediction payloads and parse their JSON

`draws` is 7 methods x 1,000 cards x 143 draws = 1,001,000 predictions, `cards` 10 methods x 100,000
cards x 1 draw = 1,000,000. Both plans compare all pairs with three tests. With 1,000 cards the plan
asks for 10,000 resamples and 9,999 sign flips. With 100,000 cards each resample draws 100,000
indices, so that this plan asks for 1,000 and 999: 10,000 would cost ten times the time of both, and
the limit, which is computed too, needs none.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from ledger.canonical import canonicalize_exact
from ledger.clock import SteppingClock
from ledger.commitment import LABEL_TAG, SALT_BYTES, commit
from ledger.decimals import format_units
from ledger.events.anchor import LedgerOpened
from ledger.events.base import Payload
from ledger.events.card import (
    CardFrozen,
    Endpoint,
    LabelSealed,
    LabelUnsealed,
    PrivateObject,
    PublicCard,
    Seal,
)
from ledger.events.codec import draft_event
from ledger.events.plan import Plan, PlanPreregistered
from ledger.events.prediction import Origin, PredictionFrozen, PredictionsClosed
from ledger.ids import SeededEntropy, format_uuid7
from ledger.store.port import Draft
from ledger.store.sqlite import SqliteStore
from scoring.plan import check_plan
from scoring.report import build_report

LOG_ID = format_uuid7(1_750_000_000_000, bytes(10))
START = datetime(2026, 5, 1, tzinfo=UTC)
ACTOR = "benchmark"


@dataclass(frozen=True, slots=True)
class Shape:
    """How a million predictions are spread, and how often the plan resamples."""

    methods: int
    cards: int
    draws: int
    resamples: int
    flips: int

    @property
    def predictions(self) -> int:
        """How many predictions are frozen."""
        return self.methods * self.cards * self.draws


SHAPES = {
    "draws": Shape(methods=7, cards=1_000, draws=143, resamples=10_000, flips=9_999),
    "cards": Shape(methods=10, cards=100_000, draws=1, resamples=1_000, flips=999),
}


def clock() -> SteppingClock:
    """Return the clock of a built ledger: one millisecond an append."""
    return SteppingClock(START, timedelta(milliseconds=1))


def make_plan(shape: Shape) -> Plan:
    """Return the plan: all pairs in three tests, each method against the first in intervals."""
    comparisons = [
        {"a": "m0", "b": f"m{number}", "primary": number == 1} for number in range(1, shape.methods)
    ]
    plan = Plan.model_validate_json(
        canonicalize_exact(
            {
                "plan_id": "benchmark",
                "title": "A million predictions",
                "card_set": {"pack": "benchmark", "cards": card_ids(shape)},
                "methods": [_method(shape, number) for number in range(shape.methods)],
                "baselines": [],
                "primary_metric": "brier",
                "secondary_metrics": ["log", "ece", "corp", "auc"],
                "clip": {"low": "0.01", "high": "0.99"},
                "calibration": {"bins": 10, "edges": "left-closed"},
                "extraction_rule": "direct/1",
                "blend_policy": "None.",
                "comparisons": comparisons,
                "published_intervals": [],
                "statistical_test": _statistics(shape),
                "tie_thresholds": ["0", "0.001"],
                "primary_tie_threshold": "0",
                "multiplicity": {
                    "confirmatory": "holm",
                    "exploratory": "bh",
                    "family": "all_pairs",
                    "tests": ["sign", "permutation", "wilcoxon"],
                },
                "missing_predictions": {"policy": "complete_case", "value": None},
                "exclusions": {"reasons": ["annulled"], "statement": "As recorded."},
                "undated_evidence": "drop",
                "strata": ["domain", "deadline_days"],
                "failure_tags": [],
                "example_selection": {"rule": "extremes/1", "count": 3},
                "branch_policies": [],
                "trigger_rule": None,
                "stopping_rule": {"rule": "fixed_cards", "cards": shape.cards},
                "labels_open_not_before": "2026-01-01T00:00:00.000000Z",
            }
        )
    )
    check_plan(plan)
    return plan


def _method(shape: Shape, number: int) -> dict[str, Any]:
    several = shape.draws > 1
    return {
        "id": f"m{number}",
        "label": f"Method {number}",
        "role": "baseline",
        "source": "imported",
        "strategy": "direct",
        "model_route": dict.fromkeys(("provider", "route", "requested_model", "resolved_model")),
        "prompt_version": None,
        "prompt_digest": None,
        "parameters": {},
        "draws": shape.draws,
        "aggregate": "mean" if several else "single",
        "extraction_rule": "direct/1",
        "blend": None,
        "branch_policy": None,
        "exposure": {
            "full_card": "yes",
            "masked_ids": True,
            "retrieval": False,
            "local_context": False,
            "risk": "low",
        },
    }


def _statistics(shape: Shape) -> dict[str, Any]:
    return {
        "primary": "sign",
        "level": "0.05",
        "two_sided": True,
        "permutation": {"exact_up_to": 40, "resamples": shape.flips, "seed": 0},
        "bootstrap": {
            "resamples": shape.resamples,
            "seed": 0,
            "generator": "pcg64-lemire32/1",
            "level": "0.95",
        },
    }


def card_ids(shape: Shape) -> list[str]:
    """Return the ids of the cards."""
    return [f"c{number:06d}" for number in range(shape.cards)]


def drafts(shape: Shape) -> Iterator[Draft]:
    """Yield every event of the evaluation after the first."""
    plan, entropy = make_plan(shape), SeededEntropy("labels")
    random = np.random.Generator(np.random.PCG64(7))
    answers = ["yes" if bit else "no" for bit in random.integers(0, 2, shape.cards)]
    sealed: list[tuple[str, bytes, str]] = []
    for card in card_ids(shape):
        yield _draft(CardFrozen(card=_card(card)))
    for card, answer in zip(card_ids(shape), answers, strict=True):
        private = PrivateObject.model_validate({"card_id": card, "resolution": answer})
        data = canonicalize_exact(private.model_dump(mode="python"))
        salt = entropy(SALT_BYTES)
        sealed.append((card, salt, data.decode()))
        seal = Seal(scheme="forecast-ledger/label/v1", commitment=commit(LABEL_TAG, salt, data))
        yield _draft(LabelSealed(card_id=card, seal=seal, custodian=ACTOR))
    yield _draft(PlanPreregistered(plan=plan, source_sha256="0" * 64))
    yield from _predictions(shape, random)
    yield _draft(
        PredictionsClosed(
            expected=shape.predictions, frozen=shape.predictions, attempts=0, failed_attempts=0
        )
    )
    for number, (card, salt, text) in enumerate(sealed):
        sealed_seq = 1 + shape.cards + number
        yield _draft(
            LabelUnsealed(card_id=card, sealed_seq=sealed_seq, salt=salt.hex(), private_json=text)
        )


def _predictions(shape: Shape, random: np.random.Generator) -> Iterator[Draft]:
    fields = PredictionFrozen(
        method="m0",
        card_id="c",
        draw=1,
        attempt=None,
        p_raw="0.5",
        p_yes="0.5",
        extraction_rule="direct/1",
        model_route={},  # type: ignore[arg-type]
        origin=Origin(kind="import", file_sha256="0" * 64, line=1),
    ).model_dump(mode="python")
    for number in range(shape.methods):
        method = f"m{number}"
        for card in card_ids(shape):
            for draw, step in enumerate(random.integers(0, 10_001, shape.draws).tolist(), 1):
                text = format_units(step * 100_000)
                fields |= {"method": method, "card_id": card, "draw": draw}
                fields |= {"p_raw": text, "p_yes": text}
                key = f"{method}/{card}/{draw}"
                data = canonicalize_exact(fields)
                yield Draft(
                    "prediction.frozen",
                    1,
                    f"prediction/{method}",
                    data,
                    ACTOR,
                    idem_key=f"prediction/{key}",
                )


def _draft(payload: Payload) -> Draft:
    return draft_event(payload, actor=ACTOR)


def _card(card: str) -> PublicCard:
    return PublicCard(
        card_id=card,
        kind="resolved",
        pack="benchmark",
        title=f"Card {card}",
        question="Will it?",
        as_of="2026-01-01T00:00:00.000000Z",
        deadline="2026-02-01T23:59:59.999999Z",
        domain=f"domain {int(card[1:]) % 7}",
        public_context="Nothing is known.",
        endpoints=(Endpoint(id="yes", wording="It does."), Endpoint(id="no", wording="Not so.")),
        masking_rule="None.",
    )


def build(path: Path, shape: Shape) -> None:
    """Write the ledger."""
    opened = LedgerOpened(
        origin="example.org/benchmark", log_id=LOG_ID, format="forecast-ledger/1", verifier_keys=()
    )
    entropy = SeededEntropy("benchmark")
    store = SqliteStore.create(path, _draft(opened), log_id=LOG_ID, clock=clock(), entropy=entropy)
    store.append(drafts(shape))
    store.close()


def run_replay(path: Path) -> dict[str, Any]:
    """Replay the ledger; return what shows that it was all scored."""
    store = SqliteStore(path, clock=clock(), entropy=SeededEntropy("none"))
    scores = build_report(store).scores
    store.close()
    first = scores["scores"]["m0"]
    return {"events": scores["ledger"]["size"], "scored": first["n"], "brier of m0": first["brier"]}


def run_twin(path: Path) -> dict[str, Any]:
    """Read and parse the payloads of all predictions, and nothing else."""
    connection = sqlite3.connect(path)
    query = (
        "SELECT p.bytes FROM events e JOIN payloads p ON p.seq = e.seq"
        " WHERE e.type = 'prediction.frozen' ORDER BY e.seq"
    )
    count = sum("p_yes" in json.loads(data) for (data,) in connection.execute(query))
    connection.close()
    return {"predictions": count}


JOBS = {"replay": run_replay, "twin": run_twin}


def measure(job: str, path: Path) -> dict[str, Any]:
    """Run a job in a fresh process; return its seconds, peak memory and result."""
    command = [sys.executable, "-m", "benchmarks.replay", "--job", job, "--ledger", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run_job(job: str, path: Path) -> None:
    """Run a job here and print its figures as JSON."""
    start, used = time.perf_counter(), time.process_time()
    result = JOBS[job](path)
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # ru_maxrss is in KiB on Linux and in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    print(
        json.dumps({"seconds": seconds, "cpu": cpu, "mib": peak * unit / 2**20, "result": result})
    )


def measure_shape(name: str, repeats: int) -> None:
    """Build one shape, measure both jobs in turn, print the best of each and the ratio."""
    shape = SHAPES[name]
    print(
        f"\n{name}: {shape.methods} methods x {shape.cards:,} cards x {shape.draws} draws ="
        f" {shape.predictions:,} predictions; {shape.resamples:,} resamples, {shape.flips:,} flips"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        start = time.perf_counter()
        build(path, shape)
        size = path.stat().st_size / 2**20
        print(f"  built in {time.perf_counter() - start:.1f} s, {size:.0f} MiB on disk")
        best: dict[str, float] = {}
        for _ in range(repeats):
            for job in JOBS:
                found = measure(job, path)
                best[job] = min(best.get(job, found["seconds"]), found["seconds"])
                print(
                    f"  {job:<7}{found['seconds']:7.2f} s wall {found['cpu']:7.2f} s processor"
                    f" {found['mib']:6.0f} MiB peak"
                    f"   {found['result']}"
                )
        print(f"  replay / twin: {best['replay'] / best['twin']:.2f}")


def main() -> int:
    """Measure the shapes asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=[*SHAPES, "both"], default="both")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--job", choices=list(JOBS), help=argparse.SUPPRESS)
    parser.add_argument("--ledger", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job is not None:
        run_job(given.job, given.ledger)
        return 0
    for name in SHAPES if given.shape == "both" else [given.shape]:
        measure_shape(name, given.repeats)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
