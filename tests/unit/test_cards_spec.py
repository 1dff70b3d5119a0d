"""docs/spec/cards.md: its examples load, and its table of rules is the code's."""

from __future__ import annotations

import re
from pathlib import Path

from card_examples import HEADER, write_yaml

from cards.lint import CARD_RULES, PACK_RULES, STALE_ACCEPTANCE, lint_pack
from cards.pack import load_pack
from cards.source import CardSource, to_public_card
from ledger.ids import SeededEntropy

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "spec" / "cards.md").read_text()


def test_the_example_is_a_pack(tmp_path: Path) -> None:
    card, labels = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    write_yaml(tmp_path / "pack.yaml", HEADER)
    for name, text in (("cards/bridge-2025.yaml", card), ("private/labels.yaml", labels)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    pack = load_pack(tmp_path)
    only = pack.card("bridge-2025")
    assert lint_pack(pack) == ()
    assert only.private is not None
    assert only.private.resolution == "no"
    public = to_public_card(
        only.source, pack=pack.id, private=only.private, entropy=SeededEntropy("spec")
    )
    assert len(public.forbidden) == 2


def test_the_rule_table_is_complete() -> None:
    listed = re.findall(r"^\| `(cards/[a-z-]+)` \|", PAGE, re.MULTILINE)
    rules = [rule.id for rule in CARD_RULES] + [rule.id for rule in PACK_RULES]
    assert listed == [*rules, STALE_ACCEPTANCE]


def test_the_field_table_is_complete() -> None:
    table = PAGE.split("| field |", 1)[1].split("\n\n", 1)[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert listed == list(CardSource.model_fields)
