"""The ledger about itself: its opening, its checkpoints, its redactions, its reports."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ledger.events.base import (
    Count,
    Decimal9,
    Digest,
    Identifier,
    Name,
    Payload,
    Sentence,
    Seq,
    Text,
)


class LedgerOpened(Payload):
    """`ledger.opened`: always event 0. `verifier_keys` are signed-note keys (`name+hash+key`)."""

    origin: Name
    log_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")]
    format: Literal["forecast-ledger/1"]
    verifier_keys: tuple[Name, ...]


class OutsideProof(Payload):
    """A proof by somebody else that the checkpoint existed: kind, issuer and the token itself."""

    kind: Literal["rfc3161", "cosignature", "opentimestamps", "rekor", "manual"]
    issuer: Name
    token_base64: Text


class CheckpointAnchored(Payload):
    """`checkpoint.anchored`: a signed checkpoint of this log, and its outside proof if any."""

    checkpoint: Text
    tree_size: Count
    proof: OutsideProof | None


class PayloadRedacted(Payload):
    """`payload.redacted`: salt and bytes of one payload are gone; its commitment stays."""

    target_seq: Seq
    commitment: Digest
    reason: Sentence
    authority: Name


class PublishedScore(Payload):
    """A published row: recomputed by the verifier from the log alone.

    Brier with nine places rounded half to even; null where not computable.
    """

    method: Identifier
    n: Count
    brier: Decimal9 | None
    log: Decimal9 | None


class TableDigest(Payload):
    """A replayed table and the SHA-256 of its bytes."""

    name: Name
    sha256: Digest


class ReportPublished(Payload):
    """`report.published`: what was shown to the world, and how many looks it took."""

    evaluated_size: Count
    scores: Annotated[tuple[PublishedScore, ...], Field(min_length=1)]
    tables: tuple[TableDigest, ...]
    confirmatory_looks: Count
    exploratory_looks: Count
    authority: Name
