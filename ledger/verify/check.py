"""Verify a ledger file: all passes, in order, into one result (docs/spec/verification.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ledger.verify.claims import Evidence, list_not_proved, list_proved
from ledger.verify.envelope import read_envelope
from ledger.verify.held import check_held, check_inside
from ledger.verify.integrity import HashSource, RangeResult, hash_range
from ledger.verify.order import check_order
from ledger.verify.reading import (
    DamagedError,
    LedgerFile,
    UnreadableError,
    file_state,
    open_ledger,
)
from ledger.verify.report import Findings, Verification, judge
from ledger.verify.schema import check_guards, check_tables, check_values
from ledger.verify.state import LogView, State
from ledger.verify.structure import RowSource, Structure
from ledger.verify.text import plural
from ledger.verify.tree import Tree
from ledger.verify.workers import check_whole

_TRIES = 3


class Source(HashSource, RowSource, Protocol):
    """Where both passes read from."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the reader brings along.

    Attributes:
        checkpoint_text: a checkpoint that the reader kept elsewhere, None for none.
        keys: verifier keys that the reader trusts.
        require_anchor: whether `unanchored` is a failure.
        workers: processes for the integrity pass.
    """

    checkpoint_text: str | None = None
    keys: tuple[str, ...] = ()
    require_anchor: bool = False
    workers: int = 1


def verify_file(
    path: str | Path,
    *,
    checkpoint_text: str | None = None,
    keys: Sequence[str] = (),
    require_anchor: bool = False,
    workers: int = 1,
) -> Verification:
    """Verify a ledger file without changing it or its folder.

    Args:
        path: the ledger file.
        checkpoint_text: a checkpoint that the caller kept elsewhere; it is trusted as held.
        keys: verifier keys (`name+id+keydata`) for its signature; without any, the log's own.
        require_anchor: count `unanchored` as failure (exit code 3).
        workers: processes for the integrity pass.

    Returns:
        The result. Every input has one: a file that is no ledger is `unverifiable`.
    """
    question = Question(checkpoint_text, tuple(keys), require_anchor, workers)
    place = Path(path)
    for _ in range(_TRIES):
        before = file_state(place)
        result = _verify_once(place, question)
        if before == file_state(place):
            return result
    return _unreadable("the file is being written; verify it when it is at rest", question)


def inspect_rows(
    source: Source, hashes: RangeResult | None, findings: Findings, question: Question
) -> Verification:
    """Run all passes after the integrity pass, and sum up.

    Args:
        source: the rows of the log.
        hashes: what the integrity pass found, None where it could not be done.
        findings: takes what is wrong; may hold findings about the file already.
        question: what the reader brings along.
    """
    tree = None
    if hashes is not None:
        for breach in hashes.breaches:
            findings.add(*breach)
        tree = Tree(hashes.count, hashes.chunk_roots, _LeafReader(source).read)
    state = State(LogView(tree.root if tree else _no_root, _CommitmentReader(source).read))
    structure = Structure(source, findings)
    held = None
    try:
        check_order(structure.events(), state, findings)
        if question.checkpoint_text is not None:
            held = check_held(question.checkpoint_text, question.keys, state, tree, findings)
    except DamagedError as error:
        _note_damage(findings, error)
    structure.judge_hidden(state.redactions)
    _check_names(structure, state, findings)
    check_inside(state, question.keys, findings)
    _note_sealed(state, findings)
    found = findings.sorted()
    count, payloads = (hashes.count, hashes.payloads) if hashes else (0, 0)
    evidence = Evidence(count, payloads, state, held, found)
    return Verification(
        verdict=judge(found, anchored=held is not None and held.matched),
        size=hashes.count if hashes else None,
        root=tree.root(tree.size).hex() if tree else None,
        findings=found,
        proved=tuple(list_proved(evidence)),
        not_proved=tuple(list_not_proved(evidence)),
        require_anchor=question.require_anchor,
    )


class _LeafReader:
    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, start: int, stop: int) -> list[bytes]:
        return hash_range(self._source, start, stop)


class _CommitmentReader:
    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, seq: int) -> str | None:
        data = self._source.envelope(seq)
        envelope = read_envelope(data)[0] if isinstance(data, bytes) else None
        return None if envelope is None else envelope.commitment


def _verify_once(path: Path, question: Question) -> Verification:
    findings = Findings()
    try:
        with open_ledger(path) as file:
            return _verify_open(file, findings, question)
    except UnreadableError as error:
        return _unreadable(str(error), question)
    except DamagedError as error:
        _note_damage(findings, error)
        return _finish(findings, question, size=None)


def _verify_open(file: LedgerFile, findings: Findings, question: Question) -> Verification:
    try:
        if not check_tables(file, findings):
            return _finish(findings, question, size=None)
        bounds = file.bounds()
    except DamagedError as error:
        _note_damage(findings, error)
        return _finish(findings, question, size=None)
    if bounds is None:
        findings.add("store.empty", None, "the ledger holds no events")
        return _finish(findings, question, size=0)
    hashes = None
    try:
        hashes = check_whole(file, *bounds, question.workers)
        check_values(file, findings)
        check_guards(file, findings)
    except DamagedError as error:
        _note_damage(findings, error)
    return inspect_rows(file, hashes, findings, question)


def _check_names(structure: Structure, state: State, findings: Findings) -> None:
    log = structure.seen.log
    if state.log_id is not None and log is not None and state.log_id != log:
        findings.add(
            "log.log", 0, f"ledger.opened names the log {state.log_id}, its envelope {log}"
        )


def _note_sealed(state: State, findings: Findings) -> None:
    sealed = [seal for card, seal in state.seals.items() if card not in state.opened]
    if sealed:
        first = min(seal.seq for seal in sealed)
        what = f"{plural(len(sealed), 'label')} still sealed, the first by event {first}"
        findings.add("label.sealed", None, what)


def _finish(findings: Findings, question: Question, *, size: int | None) -> Verification:
    found = findings.sorted()
    nothing = "Anything: no event could be read."
    verdict = judge(found, anchored=False)
    return Verification(verdict, size, None, found, (), (nothing,), question.require_anchor)


def _unreadable(message: str, question: Question) -> Verification:
    findings = Findings()
    findings.add("store.unreadable", None, message)
    return _finish(findings, question, size=None)


def _no_root(_size: int) -> None:
    return None


def _note_damage(findings: Findings, error: DamagedError) -> None:
    if not findings.of("store.damaged"):
        findings.add("store.damaged", None, f"SQLite cannot read the file: {error}")
