"""Checkpoints: the held one that the log is compared with, and those inside the log.

A held checkpoint is trusted because its reader kept it; what it says is compared with the tree. A
checkpoint inside the log is the operator's own word and anchors nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.verify.note import (
    Checkpoint,
    Key,
    NoteError,
    SignatureCheck,
    check_signatures,
    load_ed25519,
    parse_checkpoint,
    parse_key,
)
from ledger.verify.report import Findings
from ledger.verify.state import State
from ledger.verify.text import plural, show
from ledger.verify.tree import Tree


@dataclass(frozen=True, slots=True)
class Held:
    """How a held checkpoint fared.

    Attributes:
        size: its size.
        matched: whether the log has its origin and, at that size, its root.
        signed_by: in words, whose signature was checked; empty where none was.
    """

    size: int
    matched: bool
    signed_by: str


def check_held(
    text: str, keys: Sequence[str], state: State, tree: Tree | None, findings: Findings
) -> Held | None:
    """Compare the log with a held checkpoint.

    Args:
        text: the checkpoint as it was kept.
        keys: verifier keys that the reader trusts; without any, those of `ledger.opened` are used.
        state: the log as folded.
        tree: the log's tree, None where it could not be computed.
        findings: takes what is wrong.

    Returns:
        None for what is no checkpoint.
    """
    try:
        checkpoint = parse_checkpoint(text)
    except NoteError as error:
        findings.add("checkpoint.form", None, f"the held checkpoint: {error}")
        return None
    signed_by = _check_held_signature(checkpoint, keys, state, findings)
    matched = _compare(checkpoint, state, tree, findings)
    return Held(checkpoint.size, matched, signed_by)


def check_inside(state: State, keys: Sequence[str], findings: Findings) -> None:
    """Check the signatures of the checkpoints inside the log."""
    known = [*_read_keys(keys), *_read_keys(state.verifier_keys)]
    check_ed25519 = load_ed25519() if state.anchors else None
    for seq, payload in state.anchors:
        if payload["proof"] is not None:
            issuer = show(payload["proof"]["issuer"])
            findings.add("checkpoint.token", seq, f"an outside proof by {issuer} was not read")
        try:
            checkpoint = parse_checkpoint(payload["checkpoint"])
        except NoteError:
            continue  # `order.anchor` has said so.
        result = check_signatures(checkpoint, known, check_ed25519)
        _report_bad(result, seq, findings)
        if not result.good:
            findings.add("checkpoint.unchecked", seq, f"not checked: {result.unchecked}")


def _check_held_signature(
    checkpoint: Checkpoint, keys: Sequence[str], state: State, findings: Findings
) -> str:
    if not checkpoint.signatures:
        findings.add("checkpoint.unsigned", None, "the held checkpoint has no signature")
        return ""
    for key in keys:
        try:
            parse_key(key)
        except NoteError as error:
            findings.add("checkpoint.unverifiable", None, f"a key that was given: {error}")
    known = _read_keys(keys) if keys else _read_keys(state.verifier_keys)
    result = check_signatures(checkpoint, known, load_ed25519())
    _report_bad(result, None, findings)
    if result.good:
        return "a key that you gave" if keys else "a key of ledger.opened, the ledger's own word"
    findings.add("checkpoint.unverifiable", None, f"the held checkpoint: {result.unchecked}")
    return ""


def _compare(checkpoint: Checkpoint, state: State, tree: Tree | None, findings: Findings) -> bool:
    if state.origin is not None and checkpoint.origin != state.origin:
        what = f"the held checkpoint is of {show(checkpoint.origin)}, the log {show(state.origin)}"
        findings.add("checkpoint.origin", None, what)
        return False
    if tree is None:
        return False
    if checkpoint.size > tree.size:
        lost = plural(checkpoint.size - tree.size, "event")
        what = f"the held checkpoint has {checkpoint.size:,}, the log {tree.size:,}: {lost} gone"
        findings.add("checkpoint.truncated", None, what)
        return False
    if tree.root(checkpoint.size) != checkpoint.root:
        what = f"the first {plural(checkpoint.size, 'event')} are not those of the held checkpoint"
        findings.add("checkpoint.fork", None, what)
        return False
    if checkpoint.size < tree.size:
        rest = plural(tree.size - checkpoint.size, "event")
        what = f"{rest} from here on are not covered by the held checkpoint"
        findings.add("checkpoint.uncovered", checkpoint.size, what)
    return checkpoint.size > 0 and state.origin is not None


def _report_bad(result: SignatureCheck, seq: int | None, findings: Findings) -> None:
    for name in result.bad:
        findings.add("checkpoint.signature", seq, f"the signature of {show(name)} does not verify")


def _read_keys(texts: Iterable[str]) -> list[Key]:
    keys = []
    for text in texts:
        try:
            keys.append(parse_key(text))
        except NoteError:
            continue  # A key that cannot be read signs nothing.
    return keys
