"""Packs: finding, strict loading, and every kind of bad pack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from card_examples import CARD, HEADER, PRIVATE, write_pack, write_yaml

from cards.pack import SHIPPED, find_pack, list_packs, load_pack
from ledger.errors import BadInputError


def test_a_good_pack_is_loaded_in_id_order(tmp_path: Path) -> None:
    other = {**CARD, "id": "a-first", "kind": "stress", "question": "Anything else?"}
    pack = load_pack(write_pack(tmp_path, CARD, other))
    assert [card.source.id for card in pack.cards] == ["a-first", "bridge"]
    assert pack.id == "tiny"
    assert pack.card("bridge").private is not None
    assert pack.card("a-first").private is None
    assert (pack.plan, pack.predictions, pack.reported, pack.accepted) == (None, None, None, ())


def test_optional_files_are_found(tmp_path: Path) -> None:
    write_pack(tmp_path)
    for name in ("plan.yaml", "predictions.csv", "reported.yaml", "README.md", "ledger.db"):
        (tmp_path / name).write_text("")
    pack = load_pack(tmp_path)
    assert pack.plan == tmp_path / "plan.yaml"
    assert pack.predictions == tmp_path / "predictions.csv"
    assert pack.reported == tmp_path / "reported.yaml"


def test_an_unknown_card_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"no card 'x'.* It has: bridge\."):
        load_pack(write_pack(tmp_path)).card("x")


def _remove(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).unlink()


def _text(name: str, text: str = "x") -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


def _yaml(name: str, value: Any) -> Callable[[Path], object]:
    return lambda root: write_yaml(root / name, value)


def _labels(*labels: dict[str, Any]) -> Callable[[Path], object]:
    return _yaml("private/labels.yaml", {"labels": list(labels)})


BAD_PACKS: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("no header", _remove("pack.yaml"), "no pack "),
    (
        "bad header",
        _yaml("pack.yaml", {**HEADER, "id": "a b"}),
        "pack.yaml: id: has the value",
    ),
    ("header field", _yaml("pack.yaml", {**HEADER, "x": "y"}), "pack.yaml: x: is not a field"),
    ("not YAML", _text("cards/bridge.yaml", "a: [1"), "cards/bridge.yaml:1:"),
    ("duplicate key", _text("cards/bridge.yaml", "id: a\nid: b\n"), "the key 'id' stands twice"),
    ("no card", _remove("cards/bridge.yaml"), "cards: holds no card"),
    ("other suffix", _text("cards/b.yml"), "cards/b.yml: does not belong to a pack"),
    ("hidden file", _text("cards/.keep"), "cards/.keep: does not belong to a pack"),
    ("folder", lambda root: (root / "cards/x.yaml").mkdir(), "cards/x.yaml: does not belong"),
    ("file name", _yaml("cards/b.yaml", CARD), "cards/b.yaml: id: 'bridge' is not the file's"),
    (
        "bad card",
        _yaml("cards/bridge.yaml", {**CARD, "kind": "x"}),
        "bridge.yaml: kind: has the",
    ),
    ("misspelt file", _text("predicitons.csv"), "predicitons.csv: does not belong to a pack"),
    ("private file", _text("private/more.yaml"), "private/more.yaml: does not belong to a pack"),
    ("no label", _remove("private/labels.yaml"), "labels.yaml: the resolved card 'bridge' has no"),
    ("label twice", _labels(PRIVATE, PRIVATE), "labels[1].card_id: a second label for the card"),
    ("orphan", _labels(PRIVATE, {**PRIVATE, "card_id": "z"}), "a label for 'z', which is not"),
    (
        "bad label",
        _labels({**PRIVATE, "resolution": "maybe"}),
        "labels[0].resolution: has a value that",
    ),
    (
        "bad name",
        _labels({**PRIVATE, "entity_map": {"Town A": "-"}}),
        "labels[0].entity_map.Town A: a forbidden string has 0 folded words",
    ),
    (
        "label of a dossier",
        _yaml("cards/bridge.yaml", {**CARD, "kind": "dossier", "endpoints": []}),
        "labels.yaml: the card 'bridge' has a label but not the endpoints",
    ),
)


@pytest.mark.parametrize(
    ("spoil", "message"), [bad[1:] for bad in BAD_PACKS], ids=[bad[0] for bad in BAD_PACKS]
)
def test_a_bad_pack_is_one_sentence_with_place_and_remedy(
    tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    """A pack with one wrong file MUST be refused as a whole, with its place and a remedy."""
    spoil(write_pack(tmp_path))
    with pytest.raises(BadInputError) as caught:
        load_pack(tmp_path)
    assert message in str(caught.value)
    assert caught.value.remedy
    assert caught.value.what.endswith(".") or "bridge.yaml:" in caught.value.where
    assert "\n" not in str(caught.value)
    assert "maybe" not in str(caught.value)


def test_a_pack_without_cards_folder_is_refused(tmp_path: Path) -> None:
    write_yaml(tmp_path / "pack.yaml", HEADER)
    with pytest.raises(BadInputError, match=r"cards: is not a folder.* Put one YAML file"):
        load_pack(tmp_path)


def test_shipped_packs_are_found_by_name_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare name MUST mean the shipped pack, whatever lies in the working folder."""
    write_pack(tmp_path / "worldfork_pilot")
    monkeypatch.chdir(tmp_path)
    assert find_pack("worldfork_pilot") == SHIPPED / "worldfork_pilot"
    assert load_pack("./worldfork_pilot").id == "tiny"
    assert find_pack(tmp_path / "worldfork_pilot") == tmp_path / "worldfork_pilot"


def test_an_unknown_pack_names_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"no pack .* shipped pack \(.*worldfork_pilot"):
        find_pack(tmp_path / "nothing")


def test_shipped_packs_are_listed_under_their_ids() -> None:
    summaries = list_packs()
    assert [item.root.name for item in summaries] == [item.header.id for item in summaries]
    for item in summaries:
        assert len(load_pack(item.header.id).cards) == item.card_count
