"""Cards and their sealed labels: what was asked, when it was asked, and what was hidden."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from ledger.errors import DamagedLedgerError
from ledger.events.base import (
    Answer,
    Date,
    Digest,
    Identifier,
    Moment,
    Name,
    Payload,
    Sentence,
    Seq,
    Text,
)

CardKind = Literal["resolved", "dossier", "adversarial", "stress"]
LeakageRisk = Literal["low", "medium", "high"]


class SourceItem(Payload):
    """One dated note of the source packet; `dated` is a day, and undated evidence is null."""

    source_type: Name
    dated: Date | None
    text: Text
    url: Name | None = None


class Endpoint(Payload):
    """An outcome: its id and its full wording. Scored endpoints of a binary card are yes and no."""

    id: Identifier
    wording: Sentence


class MaskedEntity(Payload):
    """A stand-in used in the public text, and what sort of thing it stands for."""

    token: Name
    kind: Name


class ForbiddenDigest(Payload):
    """A string that no prompt may carry, as SHA-256(salt || folded string).

    The folding is NFKD, accents removed, case folded, every run of other characters one space
    (`fold/1`), so that an auditor who learns the string can check the log for it.
    """

    salt: Digest
    digest: Digest
    fold: Literal["fold/1"] = "fold/1"


class PublicCard(Payload):
    """The whole public card, as every method sees it.

    `as_of` is the instant after which nothing may be known; a card that gives a day means 00:00 UTC
    of it. `deadline` is the last instant that counts; a day means its last microsecond. Evidence
    dated by day alone is compared by day.
    """

    card_id: Identifier
    kind: CardKind
    pack: Identifier
    title: Sentence
    question: Sentence
    as_of: Moment
    deadline: Moment | None
    scheduled: bool | None = None
    domain: Name | None = None
    source_class: Name | None = None
    leakage_risk: LeakageRisk | None = None
    public_context: Text
    source_packet: tuple[SourceItem, ...] = ()
    endpoints: tuple[Endpoint, ...]
    auxiliary_endpoints: tuple[Endpoint, ...] = ()
    masking_rule: Sentence
    masks: tuple[MaskedEntity, ...] = ()
    forbidden: tuple[ForbiddenDigest, ...] = ()


class CardFrozen(Payload):
    """`card.frozen`: the card may be used from here on, and never changes again."""

    card: PublicCard


class Seal(Payload):
    """A commitment to bytes kept elsewhere: SHA-256(tag || salt || bytes), salt of 32 bytes."""

    scheme: Literal["forecast-ledger/label/v1"]
    commitment: Digest


class LabelSealed(Payload):
    """`label.sealed`: the private object exists and is fixed; nothing of it can be read here."""

    card_id: Identifier
    seal: Seal
    custodian: Name


class ResolutionSource(Payload):
    """Where the resolution can be checked."""

    title: Sentence
    url: Name | None = None
    source_type: Name | None = None
    retrieved_on: Date | None = None


class PrivateObject(Payload):
    """What a seal hides. Its canonical bytes are what the commitment covers.

    `forbidden` lists strings besides the entity map's real names that no prompt may carry, so that
    unsealing opens every forbidden digest of the public card. The repr shows the card id alone: a
    label must not reach a log or a traceback.
    """

    card_id: Identifier
    resolution: Answer
    resolved_on: Date | None = None
    summary: Text = ""
    sources: tuple[ResolutionSource, ...] = ()
    entity_map: dict[str, str] = Field(default_factory=dict)
    forbidden: tuple[Name, ...] = ()
    leakage_risk: LeakageRisk | None = None

    def __repr_args__(self) -> list[tuple[str | None, str]]:
        return [("card_id", self.card_id)]


def read_private(private_json: str, *, seq: int) -> PrivateObject:
    """Read the private object of the `label.unsealed` that is event `seq`.

    Raises:
        DamagedLedgerError: it is none; the message shows nothing of it.
    """
    try:
        return PrivateObject.model_validate_json(private_json)
    except ValidationError:
        # Without the cause: pydantic's message quotes what it was given.
        raise DamagedLedgerError(
            f"the label opened by event {seq} is no private object. Run `ledger verify`."
        ) from None


class Waiver(Payload):
    """Why labels are opened before predictions are closed; marks later predictions *post-label*."""

    reason: Sentence
    authority: Name


class LabelUnsealed(Payload):
    """`label.unsealed`: salt and private bytes, octet for octet, checked against the seal."""

    card_id: Identifier
    sealed_seq: Seq
    salt: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    private_json: Text
    waiver: Waiver | None = None


class LabelRevised(Payload):
    """`label.revised`: a later resolution supersedes, never overwrites."""

    card_id: Identifier
    supersedes_seq: Seq
    resolution: Answer
    reason: Sentence
    authority: Name


class CardAnnulled(Payload):
    """`card.annulled`: the card leaves every denominator, by reason."""

    card_id: Identifier
    reason: Literal["annulled", "ambiguous", "withdrawn", "invalid"]
    detail: Sentence
    authority: Name
