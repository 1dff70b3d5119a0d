"""Packs: a folder of cards with their private labels apart, read strictly as a whole.

pack.yaml              id, title, licence, provenance, accepted findings
cards/ID.yaml          one card a file, named after its id
private/labels.yaml    what the seals will hide; never travels with a ledger
plan.yaml  predictions.csv  reported.yaml    optional, read by their own readers
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cards.fields import read_fields
from cards.folding import forbidden_strings
from cards.source import CardSource, check_pair, read_card
from ledger.errors import BadInputError
from ledger.events.base import Identifier, Name, Payload, Sentence, Text
from ledger.events.card import PrivateObject
from ledger.strict_yaml import load_yaml

SHIPPED = Path(__file__).resolve().parent / "packs"
"""Where the packs of this distribution lie, in a checkout and in an installed wheel alike."""

HEADER_FILE = "pack.yaml"
LABELS_FILE = "private/labels.yaml"
_OPTIONAL_FILES = ("plan.yaml", "predictions.csv", "reported.yaml")
_DATA_SUFFIXES = (".yaml", ".yml", ".csv")


class AcceptedFinding(Payload):
    """A lint finding that the pack's author knows and keeps, and why."""

    rule: Name
    card_id: Identifier
    field: Name
    reason: Sentence


class PackHeader(Payload):
    """`pack.yaml`."""

    id: Identifier
    title: Sentence
    licence: Sentence
    provenance: Annotated[Text, Field(min_length=1)]


class Labels(Payload):
    """`private/labels.yaml`: also the accepted findings, which tell what the labels hold."""

    labels: tuple[PrivateObject, ...]
    accepted_findings: tuple[AcceptedFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class PackCard:
    """A card file beside its private object; `private` is None only where the kind allows it."""

    source: CardSource
    private: PrivateObject | None
    path: Path


@dataclass(frozen=True, slots=True)
class Pack:
    """A whole pack in memory; cards in the order of their ids.

    Attributes:
        root: the folder.
        accepted: lint findings that the author keeps, each with a reason.
        plan, predictions, reported: the optional files, None where the pack has none.
    """

    header: PackHeader
    root: Path
    cards: tuple[PackCard, ...]
    accepted: tuple[AcceptedFinding, ...]
    plan: Path | None
    predictions: Path | None
    reported: Path | None

    @property
    def id(self) -> str:
        """The pack's id, which its cards carry when frozen."""
        return self.header.id

    def card(self, card_id: str) -> PackCard:
        """Find a card; raises BadInputError with the ids that exist."""
        for card in self.cards:
            if card.source.id == card_id:
                return card
        known = ", ".join(card.source.id for card in self.cards[:40])
        raise BadInputError(
            f"the pack {self.id!r} has no card {card_id!r}.", remedy=f"It has: {known}."
        )


@dataclass(frozen=True, slots=True)
class PackSummary:
    """One row of the list of shipped packs."""

    header: PackHeader
    root: Path
    card_count: int


def find_pack(name_or_path: str | Path) -> Path:
    """Find a pack's folder: a shipped pack by its name, or any folder by its path.

    A bare name means the shipped pack, whatever lies in the working folder; write `./name` for a
    folder of that name.

    Raises:
        BadInputError: neither a shipped pack nor a folder with a pack.yaml.
    """
    text = str(name_or_path)
    shipped = {root.name: root for root in _shipped_roots()}
    if text in shipped:
        return shipped[text]
    root = Path(name_or_path)
    if not (root / HEADER_FILE).is_file():
        names = ", ".join(sorted(shipped)) or "none"
        raise BadInputError(
            f"no pack {text!r}.",
            remedy=f"Name a shipped pack ({names}) or a folder with a {HEADER_FILE}.",
        )
    return root


def find_pack_file(name_or_path: str | Path, kind: Literal["plan", "predictions"]) -> Path:
    """Return a file by its path, or the plan or predictions that a shipped pack of that name has.

    Raises:
        BadInputError: a shipped pack without such a file.
    """
    path = Path(name_or_path)
    if path.exists() or str(name_or_path) not in {root.name for root in _shipped_roots()}:
        return path
    pack = load_pack(str(name_or_path))
    file = pack.plan if kind == "plan" else pack.predictions
    if file is None:
        raise BadInputError(f"the pack {pack.id!r} has no {kind}", remedy="Name a file.")
    return file


def list_packs() -> list[PackSummary]:
    """List the packs of this distribution by name; reads their headers, not their cards."""
    return [
        PackSummary(_read_header(root), root, len(list((root / "cards").glob("*.yaml"))))
        for root in _shipped_roots()
    ]


def load_pack(path: str | Path) -> Pack:
    """Read a pack as a whole; a pack with one wrong file is refused.

    Args:
        path: what `find_pack` takes.

    Raises:
        BadInputError: one sentence: file, field, what is wrong and what to do.
    """
    root = find_pack(path)
    header = _read_header(root)
    _refuse_unknown_files(root)
    private = _read_private(root / LABELS_FILE)
    labels = _index_labels(private.labels, root / LABELS_FILE)
    cards = tuple(_load_card(file, labels, root) for file in _card_files(root / "cards"))
    _refuse_orphans(labels, cards, root)
    plan, predictions, reported = (_optional(root / name) for name in _OPTIONAL_FILES)
    return Pack(header, root, cards, private.accepted_findings, plan, predictions, reported)


def _shipped_roots() -> list[Path]:
    return sorted(file.parent for file in SHIPPED.glob(f"*/{HEADER_FILE}"))


def _read_header(root: Path) -> PackHeader:
    file = root / HEADER_FILE
    return read_fields(PackHeader, load_yaml(file), where=str(file))


def _refuse_unknown_files(root: Path) -> None:
    # Foreign files beside a pack are its owner's business; a misspelt data file is not.
    known = {HEADER_FILE, *_OPTIONAL_FILES}
    for item in sorted(root.iterdir()):
        if item.suffix in _DATA_SUFFIXES and item.name not in known:
            raise _unknown_file(item, f"The data files of a pack are {', '.join(sorted(known))}.")
    private = root / LABELS_FILE
    for item in sorted(private.parent.iterdir()) if private.parent.is_dir() else ():
        if item != private:
            raise _unknown_file(item, "The folder private/ holds labels.yaml alone.")


def _card_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise BadInputError(
            "is not a folder.", where=str(folder), remedy="Put one YAML file a card there."
        )
    files = sorted(folder.iterdir())
    for item in files:
        if item.suffix != ".yaml" or not item.is_file():
            raise _unknown_file(item, "The folder cards/ holds one .yaml file a card.")
    if not files:
        raise BadInputError("holds no card.", where=str(folder), remedy="Add a card.")
    return files


def _read_private(file: Path) -> Labels:
    if not file.exists():
        return Labels(labels=())
    return read_fields(Labels, load_yaml(file), where=str(file), show_values=False)


def _index_labels(read: tuple[PrivateObject, ...], file: Path) -> dict[str, PrivateObject]:
    labels: dict[str, PrivateObject] = {}
    for index, label in enumerate(read):
        place = f"{file}: labels[{index}]"
        if label.card_id in labels:
            raise BadInputError(
                f"a second label for the card {label.card_id!r}.",
                where=f"{place}.card_id",
                remedy="Keep one of them.",
            )
        try:
            forbidden_strings(label)
        except BadInputError as error:
            where = f"{place}.{error.where}"
            raise BadInputError(error.what, where=where, remedy=error.remedy) from error
        labels[label.card_id] = label
    return labels


def _load_card(file: Path, labels: dict[str, PrivateObject], root: Path) -> PackCard:
    source = read_card(file)
    if source.id != file.stem:
        raise BadInputError(
            f"{source.id!r} is not the file's name {file.stem!r}.",
            where=f"{file}: id",
            remedy=f"Rename the file to {source.id}.yaml or correct the id.",
        )
    private = labels.get(source.id)
    try:
        check_pair(source, private)
    except BadInputError as error:
        place = str(root / LABELS_FILE)
        raise BadInputError(error.what, where=place, remedy=error.remedy) from error
    return PackCard(source, private, file)


def _refuse_orphans(
    labels: dict[str, PrivateObject], cards: tuple[PackCard, ...], root: Path
) -> None:
    orphans = sorted(set(labels) - {card.source.id for card in cards})
    if orphans:
        raise BadInputError(
            f"a label for {orphans[0]!r}, which is not a card of the pack.",
            where=str(root / LABELS_FILE),
            remedy="Remove the label or add the card.",
        )


def _optional(file: Path) -> Path | None:
    return file if file.is_file() else None


def _unknown_file(item: Path, remedy: str) -> BadInputError:
    return BadInputError("does not belong to a pack.", where=str(item), remedy=remedy)
