"""The passes of the verifier against the writer's code: trees, notes, forms, scores, workers."""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from builders import ORIGIN, SIGNER, VKEY, Book
from evaluations import honest_book, ready
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import DIRECT, RUNNER, UNIFORM
from pydantic import ValidationError
from rows import Rows, forge

from ledger.canonical import canonicalize_exact, is_canonical, parse_strict
from ledger.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.envelope import parse_envelope
from ledger.errors import BadInputError
from ledger.events.registry import BY_NAME, EVENT_TYPES
from ledger.merkle import leaf_hash, merkle_tree_hash
from ledger.signed_note import (
    Note,
    SignerKey,
    format_note,
    format_verifier_key,
    parse_verifier_key,
    sign_note,
)
from ledger.verify import canonical, workers
from ledger.verify.check import verify_file
from ledger.verify.envelope import read_envelope
from ledger.verify.forms import format_units, parse_units
from ledger.verify.note import (
    NoteError,
    check_signatures,
    load_ed25519,
    parse_checkpoint,
    parse_key,
)
from ledger.verify.order import check_order
from ledger.verify.payloads import FORMS
from ledger.verify.report import Findings
from ledger.verify.scores import Score, ScoreSheet
from ledger.verify.state import LogView, State
from ledger.verify.structure import Structure
from ledger.verify.tree import CHUNK, EMPTY_ROOT, Tree, root_of

HONEST = honest_book()
PAYLOADS = [
    (record.type, parse_strict(record.payload)) for record in HONEST.records if record.payload
]
ONE_OF_EACH = dict(PAYLOADS)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner)
    ),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=300)
def test_the_two_canonical_encoders_agree(value: object) -> None:
    """An envelope MUST be the canonical JSON (RFC 8785)."""
    data = canonicalize_exact(value)
    assert canonical.encode_canonical(value) == data
    assert canonical.is_canonical(data, canonical.parse_json(data))


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":2}',
        b"NaN",
        b"[Infinity]",
        b"1.0",
        b"1e2",
        b"9007199254740992",
        b"-9007199254740992",
        b"1" * 100_000,
        b'"\\ud800"',
        b'{"\\udfff":1}',
        b"\xff",
        b"\xef\xbb\xbf1",
        b'"\x01"',
        b"[" * 65 + b"]" * 65,
        b"[" * 1_000_000,
        b"{" * 1_000_000,
        b"",
        b"[1,]",
        b"1 2",
    ],
)
def test_what_no_reader_may_accept_is_refused(data: bytes) -> None:
    """A reader MUST refuse duplicate keys, NaN, lone surrogates, integers beyond 2^53-1."""
    with pytest.raises(canonical.JsonError):
        canonical.parse_json(data)
    assert not is_canonical(data) or b"." in data or b"e" in data


@pytest.mark.parametrize(
    "data",
    [b'{"b":1,"a":2}', b"[1, 2]", b'"\\u0041"', b'"\\u000A"', b"-0", b'"\\/"', b" 1", b"1\n"],
)
def test_other_spellings_are_not_canonical(data: bytes) -> None:
    assert not canonical.is_canonical(data, canonical.parse_json(data))


def test_keys_are_sorted_by_utf16_units() -> None:
    """RFC 8785 section 3.2.3: U+1F600 sorts before U+FB33."""
    data = '{"\U0001f600":1,"\ufb33":2}'.encode()
    assert canonical.is_canonical(data, canonical.parse_json(data))
    other = '{"\ufb33":2,"\U0001f600":1}'.encode()
    assert not canonical.is_canonical(other, canonical.parse_json(other))


ENVELOPE = HONEST.records[8].envelope_bytes


@given(st.integers(0, len(ENVELOPE) - 1), st.binary(max_size=3), st.integers(0, 3))
@settings(max_examples=400)
def test_writer_and_verifier_accept_the_same_envelopes(place: int, new: bytes, cut: int) -> None:
    data = ENVELOPE[:place] + new + ENVELOPE[place + cut :]
    try:
        parse_envelope(data)
        accepted = True
    except BadInputError:
        accepted = False
    envelope, flaws = read_envelope(data)
    assert accepted == (envelope is not None and not flaws)


def mutations(value: Any) -> st.SearchStrategy[Any]:
    """A payload with one part of it changed: a key more, a value of another type or range."""
    texts: list[Any] = ["", "x", "yes", "0.50", "1.5", "-1", "0", "a" * 201, "a\n", "0.9 "]
    odd = st.sampled_from([None, True, 0, -1, 2**53 - 1, [], {}, *texts])
    paths = st.sampled_from(list(walk(value)))
    return st.tuples(paths, st.sampled_from(["set", "add"]), odd)


def walk(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All paths into a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items if isinstance(value, (dict, list)) else ():
        found += walk(item, (*path, key)) if isinstance(item, (dict, list)) else [(*path, key)]
    return found


@given(st.data())
@settings(max_examples=600)
def test_writer_and_verifier_accept_the_same_payloads(data: st.DataObject) -> None:
    """A payload has exactly its fields, nulls written out."""
    kind, original = data.draw(st.sampled_from(PAYLOADS))
    path, what, odd = data.draw(mutations(original))
    value = json.loads(json.dumps(original))
    target = value
    for key in path[:-1]:
        target = target[key]
    if what == "add" and isinstance(target, dict):
        target["more"] = odd
    else:
        target[path[-1]] = odd
    row = BY_NAME[kind]
    try:
        model = row.model.model_validate_json(canonicalize_exact(value))
        # The writer fills in nulls; what it then writes is what counts.
        accepted = model.model_dump(mode="json") == value
    except ValidationError:
        accepted = False
    wrong = FORMS[kind, row.version](value)
    assert accepted == (wrong is None), wrong


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_missing_field_is_named(kind: str) -> None:
    original = ONE_OF_EACH[kind]
    form = FORMS[kind, 1]
    assert form(original) is None
    for key in original:
        rest = {k: v for k, v in original.items() if k != key}
        assert form(rest) == f" lacks {key}"


def test_the_vocabulary_is_the_writers() -> None:
    assert set(FORMS) == {(row.name, row.version) for row in EVENT_TYPES}


@pytest.mark.parametrize("text", ["0.50", "+1", "-0", "00", "1.", ".5", "1e-3", "0.1234567891", ""])
def test_other_spellings_of_a_decimal_are_refused(text: str) -> None:
    assert parse_units(text) is None


@given(st.integers(1 - 10**27, 10**27 - 1))
def test_a_decimal_comes_back(units: int) -> None:
    assert parse_units(format_units(units)) == units


def test_the_tree_is_the_writers_at_every_size() -> None:
    """The log's root MUST be the RFC 6962 Merkle tree hash over the same leaves."""
    leaves = [leaf_hash(str(i).encode()) for i in range(2 * CHUNK + 77)]
    roots = [root_of(leaves[i : i + CHUNK]) for i in range(0, len(leaves), CHUNK)]
    tree = Tree(len(leaves), roots, lambda start, stop: leaves[start:stop])
    sizes = [*range(40), CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, len(leaves)]
    for size in sizes:
        assert tree.root(size) == merkle_tree_hash(leaves[:size])
    assert tree.root(0) == EMPTY_ROOT


def checkpoint_text(size: int = 3) -> str:
    """A signed checkpoint."""
    root = merkle_tree_hash([leaf_hash(b"x")] * size)
    return sign_checkpoint(Checkpoint(ORIGIN, size, root), SIGNER)


@given(st.integers(0, len(checkpoint_text()) - 1), st.text(max_size=2), st.integers(0, 2))
@settings(max_examples=400)
def test_writer_and_verifier_accept_the_same_checkpoints(place: int, new: str, cut: int) -> None:
    text = checkpoint_text()
    text = text[:place] + new + text[place + cut :]
    try:
        open_checkpoint(text, [SIGNER.verifier_key])
        accepted = True
    except BadInputError:
        accepted = False
    try:
        checkpoint = parse_checkpoint(text)
        result = check_signatures(checkpoint, [parse_key(VKEY)], load_ed25519())
    except NoteError:
        assert not accepted
    else:
        assert accepted == (result.good and not result.bad)


@given(st.integers(0, len(VKEY) - 1), st.text(max_size=2), st.integers(0, 2))
@settings(max_examples=300)
def test_writer_and_verifier_accept_the_same_keys(place: int, new: str, cut: int) -> None:
    text = VKEY[:place] + new + VKEY[place + cut :]
    try:
        parse_verifier_key(text)
        accepted = True
    except BadInputError:
        accepted = False
    try:
        parse_key(text)
    except NoteError:
        assert not accepted
    else:
        assert accepted


def test_a_signature_under_another_name_is_not_the_origins() -> None:
    """A checkpoint MUST be refused unless a known key *whose name is the origin* signed it."""
    other = SignerKey("example.com/witness", b"\x09" * 32)
    body, _, _ = checkpoint_text().rpartition("\n\n")
    foreign = sign_checkpoint(Checkpoint("example.com/witness", 1, b"\x00" * 32), other)
    text = f"{body}\n\n{foreign.rpartition(chr(10) * 2)[2]}"
    keys = [parse_key(format_verifier_key(other.verifier_key))]
    result = check_signatures(parse_checkpoint(text), keys, load_ed25519())
    assert (result.good, len(result.bad)) == (False, 1)


def test_a_good_signature_of_another_name_does_not_speak_for_the_origin() -> None:
    """A checkpoint MUST be refused unless a known key *whose name is the origin* signed it."""
    witness = SignerKey("example.com/witness", b"\x09" * 32)
    body, _, _ = checkpoint_text().rpartition("\n\n")
    text = format_note(sign_note(Note(f"{body}\n"), witness))
    keys = [parse_key(format_verifier_key(witness.verifier_key))]
    result = check_signatures(parse_checkpoint(text), keys, load_ed25519())
    assert (result.good, result.bad) == (False, ())


def test_base64_has_one_form() -> None:
    """Reading is strict: a text that would not be written back as the same bytes is refused."""
    lines = checkpoint_text().split("\n")
    last = lines[2][-2]
    lines[2] = f"{lines[2][:-2]}{chr(ord(last) + 1)}="
    with pytest.raises(NoteError, match="base64"):
        parse_checkpoint("\n".join(lines))


@pytest.mark.parametrize("y", [0, 1, 2**255 - 20, 2**255 - 19])
def test_a_key_of_small_order_is_refused(y: int) -> None:
    """It would accept one signature under every text."""
    data = b"\x01" + y.to_bytes(32, "little")
    key_id = sha256(ORIGIN.encode() + b"\n" + data).hexdigest()[:8]
    with pytest.raises(NoteError, match="small order"):
        parse_key(f"{ORIGIN}+{key_id}+{base64.b64encode(data).decode()}")


def long_log(events: int) -> Rows:
    """A log of many small events of no known type."""
    book = Book()
    book.open()
    for index in range(events - 1):
        book.add_bytes("weather.observed", b"{}", f"s{index % 7}")
    return Rows.of(book)


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of three subtrees."""
    return long_log(2 * CHUNK + 300).write(tmp_path_factory.mktemp("long") / "ledger.db")


def test_several_processes_find_what_one_finds(
    long_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = verify_file(long_file)
    assert (one.verdict, one.size) == ("unanchored", 2 * CHUNK + 300)
    monkeypatch.setattr(workers, "MIN_EVENTS_A_WORKER", 1)
    for count in (2, 3, 5):
        assert verify_file(long_file, workers=count) == one


def test_several_processes_find_a_flip_in_any_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(workers, "MIN_EVENTS_A_WORKER", 1)
    rows = long_log(CHUNK + 50)
    for seq in (0, CHUNK - 1, CHUNK, CHUNK + 49):
        path = rows.patch(seq, leaf=b"\x00" * 32).write(tmp_path / f"{seq}.db")
        result = verify_file(path, workers=2)
        assert [(f.rule, f.seq) for f in result.findings if f.severity == "tampered"] == [
            ("log.leaf", seq)
        ]
    missing = Rows(s for s in rows.stored if s.seq != 3).write(tmp_path / "missing.db")
    result = verify_file(missing, workers=2)
    assert result == verify_file(missing)
    found = {(f.rule, f.seq) for f in result.findings}
    assert {("log.seq", 3), ("log.prev", 4)} <= found


def test_a_worker_that_dies_is_done_again(long_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MIN_EVENTS_A_WORKER", 1)
    monkeypatch.setattr(workers, "_START", "raise SystemExit(9)")
    assert verify_file(long_file, workers=2).verdict == "unanchored"


def folded(book: Book) -> State:
    """The state after all events of a book."""
    state = State(LogView(lambda size: None, lambda seq: None))
    findings = Findings()
    check_order(Structure(Rows.of(book), findings).events(), state, findings)
    return state


@pytest.mark.parametrize(
    ("policy", "value", "expected"),
    [
        ("complete_case", None, Score(1, 90_000_000, 356_674_944)),
        ("impute", "0.25", Score(2, 326_250_000, 871_484_653)),
        ("worst_case", None, Score(2, 545_000_000, 2_480_922_565)),
    ],
)
def test_a_missing_prediction_counts_as_the_plan_says(
    policy: str, value: str | None, expected: Score
) -> None:
    """`impute` puts the plan's value for a missing probability, `worst_case` puts 1 - y."""
    missing = {"policy": policy, "value": value}
    book = ready(DIRECT, UNIFORM, cards=("a", "b"), missing_predictions=missing)
    book.predict("direct", "a", "0.7")
    book.close(("direct", "b", 1))
    book.unseal("a")
    book.unseal("b")
    state = folded(book)
    assert state.plan is not None
    assert ScoreSheet(state, state.plan).score("direct") == expected


@pytest.mark.parametrize(
    ("how", "draws", "expected"),
    [
        ("mean", ["0.1", "0.2", "0.4"], "0.233333333"),
        ("median", ["0.9", "0.1", "0.2"], "0.2"),
        ("single", ["0.3"], "0.3"),
        ("median", ["0.000000001", "0.000000002"], "0.000000002"),
        ("mean", ["0.000000002", "0.000000003"], "0.000000002"),
    ],
)
def test_draws_are_aggregated_exactly(how: str, draws: list[str], expected: str) -> None:
    """The exact mean or median, rounded half to even at nine places."""
    method = dict(RUNNER) | {"id": "direct", "draws": len(draws), "aggregate": how}
    book = ready(method, UNIFORM)
    for number, p in enumerate(draws, 1):
        book.predict("direct", "a", p, draw=number)
    book.close()
    book.unseal("a")
    state = folded(book)
    assert state.plan is not None
    score = ScoreSheet(state, state.plan).score("direct")
    exact = (1 - Fraction(expected)) ** 2
    assert isinstance(score, Score)
    assert score.brier_units == round(exact * 10**9)


def test_forged_rows_are_whole_unless_changed() -> None:
    """The forger of the tests forges nothing by itself."""
    rows = Rows.of(ready())
    assert forge(rows.stored).stored == rows.stored
