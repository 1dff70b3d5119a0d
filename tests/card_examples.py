"""A small card, its private object and a small pack on disk, for the tests of cards/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cards.source import CardSource
from ledger.events.card import PrivateObject

CARD: dict[str, Any] = {
    "id": "bridge",
    "kind": "resolved",
    "title": "Opening of a bridge",
    "question": "Will Town A open its new bridge to cars by 30 June 2025?",
    "as_of": "2025-03-01",
    "deadline": "2025-06-30",
    "scheduled": False,
    "domain": "transport",
    "source_class": "city office",
    "leakage_risk": "low",
    "public_context": "Town A has built for three years, and inspections have begun.",
    "source_packet": [
        {"source_type": "site_note", "dated": "2025-02-20", "text": "The deck is complete."},
        {"source_type": "rules_note", "dated": "2025-03-01", "text": "Only car traffic counts."},
    ],
    "endpoints": [
        {"id": "yes", "wording": "Cars use the bridge by the deadline."},
        {"id": "no", "wording": "Cars do not use the bridge when the deadline ends."},
    ],
    "auxiliary_endpoints": [{"id": "toll", "wording": "The council sets a charge."}],
    "masking_rule": "The place is called Town A.",
    "masks": [{"token": "Town A", "kind": "town"}],
    "provenance": "Made up for tests.",
}

PRIVATE: dict[str, Any] = {
    "card_id": "bridge",
    "resolution": "no",
    "resolved_on": "2025-06-12",
    "summary": "Cracked bearings forced a rebuild.",
    "entity_map": {"Town A": "Åsnes Kløften"},
    "forbidden": ["Klöften"],
}

HEADER = {"id": "tiny", "title": "Tiny", "licence": "CC0-1.0", "provenance": "Made up."}


def make_card(**changes: object) -> CardSource:
    """Build the example card with some fields replaced."""
    return CardSource.model_validate_json(json.dumps({**CARD, **changes}))


def make_private(**changes: object) -> PrivateObject:
    """Build the example private object with some fields replaced."""
    return PrivateObject.model_validate_json(json.dumps({**PRIVATE, **changes}))


def write_yaml(path: Path, value: object) -> None:
    """Write a value as JSON, which every YAML reader takes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_pack(root: Path, *cards: dict[str, Any], **private: object) -> Path:
    """Write a pack of the given cards (the example card by default) and its labels file."""
    write_yaml(root / "pack.yaml", HEADER)
    for card in cards or (CARD,):
        write_yaml(root / "cards" / f"{card['id']}.yaml", card)
    write_yaml(root / "private" / "labels.yaml", {"labels": [PRIVATE], **private})
    return root
