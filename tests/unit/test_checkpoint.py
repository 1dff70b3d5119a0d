"""Checkpoints (docs/spec/checkpoint.md): strict text, who may sign, and the page's own example."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import (
    MAX_SIZE,
    Checkpoint,
    format_checkpoint,
    open_checkpoint,
    parse_checkpoint,
    sign_checkpoint,
)
from ledger.errors import BadInputError
from ledger.merkle import (
    EMPTY_ROOT,
    check_consistency,
    check_inclusion,
    leaf_hash,
    merkle_tree_hash,
    prove_consistency,
    prove_inclusion,
)
from ledger.signed_note import (
    Note,
    SignerKey,
    format_note,
    format_signer_key,
    format_verifier_key,
    parse_note,
    sign_note,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec" / "checkpoint.md"
LOG = SignerKey("example.com/log", sha256(b"log").digest())
OTHER_LOG = SignerKey("example.com/other", sha256(b"other").digest())
ROOT = sha256(b"root").digest()
CHECKPOINT = Checkpoint(LOG.name, 7, ROOT)
TEXT = format_checkpoint(CHECKPOINT)
SIGNED = sign_checkpoint(CHECKPOINT, LOG)
ROOT_LINE = TEXT.splitlines()[2]

lines = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[chr(i) for i in range(32)]),
    min_size=1,
)


@given(lines, st.integers(1, MAX_SIZE), st.binary(min_size=32, max_size=32), st.lists(lines))
def test_any_checkpoint_comes_back(origin: str, size: int, root: bytes, more: list[str]) -> None:
    plain = Checkpoint(origin, size, root)
    text = format_checkpoint(plain)
    assert parse_checkpoint(text) == plain
    extended = parse_checkpoint(text + "".join(f"{line}\n" for line in more))
    assert extended == replace(plain, extensions=tuple(more))


def test_the_three_lines() -> None:
    assert f"example.com/log\n7\n{ROOT_LINE}\n" == TEXT
    assert open_checkpoint(SIGNED, [LOG.verifier_key]) == CHECKPOINT
    assert open_checkpoint(SIGNED.encode(), [LOG.verifier_key]) == CHECKPOINT


MALFORMED: list[tuple[str, str]] = [
    ("", "end in a newline"),
    ("\n", "fewer than three"),
    (TEXT[:-1], "end in a newline"),
    ("example.com/log\n7\n", "fewer than three"),
    (TEXT.replace("example.com/log", ""), "empty"),
    (f"\n{TEXT}", "tree size"),
    (f"{TEXT}\n", "empty"),
    (f"{TEXT}extension\n\n", "empty"),
    (TEXT.replace("\n7\n", "\n07\n"), "leading zeros"),
    (TEXT.replace("\n7\n", "\n+7\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n-7\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n7 \n"), "tree size"),
    (TEXT.replace("\n7\n", "\n 7\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n1_000\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n7.0\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n0x7\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n\u0667\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n\n"), "tree size"),
    (TEXT.replace("\n7\n", f"\n{MAX_SIZE + 1}\n"), "not a tree size"),
    (TEXT.replace("\n7\n", f"\n{'9' * 5000}\n"), "tree size"),
    (TEXT.replace("\n7\n", "\n0\n"), "empty tree's root"),
    (TEXT.replace(ROOT_LINE, ""), "not 32 bytes"),
    (TEXT.replace(ROOT_LINE, ROOT_LINE.rstrip("=")), "base64"),
    (TEXT.replace(ROOT_LINE, f" {ROOT_LINE}"), "base64"),
    (TEXT.replace(ROOT_LINE, f"{ROOT_LINE}="), "base64"),
    (TEXT.replace(ROOT_LINE, f"{ROOT_LINE[:5]}!{ROOT_LINE[5:]}"), "base64"),
    (TEXT.replace(ROOT_LINE, ROOT_LINE.replace("=", "é")), "base64"),
    (TEXT.replace(ROOT_LINE, f"{'A' * 42}B="), "base64"),
    (TEXT.replace(ROOT_LINE, "AAAA"), "not 32 bytes"),
    (TEXT.replace(ROOT_LINE, f"{ROOT_LINE[:-1]}AAAA="), "32 bytes|base64"),
    (TEXT.replace(ROOT_LINE, f"{'_' * 43}="), "base64"),
    (TEXT.replace("\n", "\r\n"), "tree size|control"),
    (TEXT.replace("/log", "/\tlog"), "control character"),
    (TEXT.replace("/log", "/\ud800"), "surrogate"),
]


@pytest.mark.parametrize(("broken", "reason"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_checkpoint_is_refused(broken: str, reason: str) -> None:
    """Spec, Note text 5: "Reading is strict"."""
    with pytest.raises(BadInputError, match=reason):
        parse_checkpoint(broken)


@pytest.mark.parametrize("size", [0, 1, 10, MAX_SIZE])
def test_the_sizes_at_the_edges(size: int) -> None:
    checkpoint = Checkpoint(LOG.name, size, ROOT if size else EMPTY_ROOT)
    assert parse_checkpoint(format_checkpoint(checkpoint)) == checkpoint


def test_the_values_of_a_checkpoint_are_checked() -> None:
    calls: list[Callable[[], object]] = [
        lambda: Checkpoint("", 7, ROOT),
        lambda: Checkpoint("two\nlines", 7, ROOT),
        lambda: Checkpoint(LOG.name, -1, ROOT),
        lambda: Checkpoint(LOG.name, MAX_SIZE + 1, ROOT),
        lambda: Checkpoint(LOG.name, True, ROOT),  # noqa: FBT003 - the mistake under test
        lambda: Checkpoint(LOG.name, 7, ROOT[:31]),
        lambda: Checkpoint(LOG.name, 7, ROOT.hex()),  # type: ignore[arg-type]
        lambda: Checkpoint(LOG.name, 0, ROOT),
        lambda: Checkpoint(LOG.name, 7, ROOT, ("",)),
        lambda: Checkpoint(LOG.name, 7, ROOT, ("a\nb",)),
    ]
    for call in calls:
        with pytest.raises(BadInputError):
            call()


def test_extension_lines_are_kept_and_never_written() -> None:
    """Spec, Note text 4: a reader MUST keep them; a writer MUST NOT write any."""
    signed = format_note(sign_note(Note(f"{TEXT}first extension\nsecond\n"), LOG))
    checkpoint = open_checkpoint(signed, [LOG.verifier_key])
    assert checkpoint.extensions == ("first extension", "second")
    with pytest.raises(BadInputError, match="extension lines"):
        format_checkpoint(checkpoint)
    with pytest.raises(BadInputError, match="extension lines"):
        sign_checkpoint(checkpoint, LOG)
    stripped = signed.replace("first extension\nsecond\n", "")
    with pytest.raises(BadInputError, match="does not verify"):
        open_checkpoint(stripped, [LOG.verifier_key])


def test_a_key_signs_for_its_own_log_only() -> None:
    with pytest.raises(BadInputError, match="does not sign for the log"):
        sign_checkpoint(CHECKPOINT, OTHER_LOG)


def test_another_known_log_cannot_speak_under_this_name() -> None:
    """Spec, Verifying 3: refused unless a known key whose name is the origin signed it."""
    forged = format_note(sign_note(Note(TEXT), OTHER_LOG))
    keys = [LOG.verifier_key, OTHER_LOG.verifier_key]
    with pytest.raises(BadInputError, match=r"no known key of 'example\.com/log'"):
        open_checkpoint(forged, keys)
    both = format_note(sign_note(parse_note(forged), LOG))
    assert open_checkpoint(both, keys) == CHECKPOINT


def test_a_checkpoint_without_a_known_key_is_not_believed() -> None:
    """C2SP: "The text MUST be ignored unless the note is signed by a trusted key"."""
    for keys in ([], [OTHER_LOG.verifier_key], [SignerKey(LOG.name, ROOT).verifier_key]):
        with pytest.raises(BadInputError, match="no known key"):
            open_checkpoint(SIGNED, keys)


def test_a_bad_signature_of_a_known_key_spoils_the_checkpoint() -> None:
    """Spec, Verifying 2: MUST spoil the whole checkpoint, also beside a good one."""
    note = sign_note(Note(TEXT), LOG, OTHER_LOG)
    bad = replace(note.signatures[1], signature=bytes(64))
    spoilt = format_note(replace(note, signatures=(note.signatures[0], bad)))
    with pytest.raises(BadInputError, match=r"example\.com/other\+[0-9a-f]{8} does not verify"):
        open_checkpoint(spoilt, [LOG.verifier_key, OTHER_LOG.verifier_key])
    assert open_checkpoint(spoilt, [LOG.verifier_key]) == CHECKPOINT


def test_two_keys_of_one_name_rotate() -> None:
    """Spec, Verifying 4: while both are in use, a checkpoint carries both signatures."""
    new = SignerKey(LOG.name, sha256(b"new").digest())
    both = format_note(sign_note(parse_note(SIGNED), new))
    for keys in ([LOG.verifier_key], [new.verifier_key], [new.verifier_key, LOG.verifier_key]):
        assert open_checkpoint(both, keys) == CHECKPOINT


def test_every_changed_byte_is_refused() -> None:
    data = SIGNED.encode()
    survivors = []
    for at, octet in enumerate(data):
        for turned in {octet ^ 1, octet ^ 0x20, octet ^ 0x80, (octet + 1) % 256}:
            changed = data[:at] + bytes([turned]) + data[at + 1 :]
            try:
                open_checkpoint(changed, [LOG.verifier_key])
            except BadInputError:
                continue
            survivors.append((at, turned))
    assert survivors == []


def page_values() -> dict[str, str]:
    """The `name = value` lines of the page's worked example."""
    blocks = re.findall(r"```worked-example\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    pairs = [line.split(" = ") for block in blocks for line in block.splitlines()]
    return {name: value for name, value in pairs}  # noqa: C416 - a third part must fail


def page_entries() -> list[bytes]:
    sentence = re.search(r"Three entries.*?\n\n", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert sentence is not None
    return [entry.encode() for entry in re.findall(r"`([^`]+)`", sentence[0])]


def test_the_worked_example_of_the_page_holds() -> None:
    """Every value of the page is recomputed from its three entries and its seed."""
    leaves = [leaf_hash(entry) for entry in page_entries()]
    root2, root3 = merkle_tree_hash(leaves[:2]), merkle_tree_hash(leaves)
    expected = {f"leaf[{at}]": leaf.hex() for at, leaf in enumerate(leaves)}
    expected |= {"root(2)": root2.hex(), "root(3)": root3.hex()}
    for index, leaf in enumerate(leaves):
        proof = prove_inclusion(index, leaves)
        expected[f"inclusion({index}, 3)"] = " ".join(item.hex() for item in proof)
        assert check_inclusion(index, 3, leaf, proof, root3)
    proof = prove_consistency(2, leaves)
    expected["consistency(2, 3)"] = " ".join(item.hex() for item in proof)
    assert check_consistency(2, 3, proof, root2, root3)
    values = page_values()
    signer = SignerKey("example.com/forecast-log", bytes.fromhex(values["seed"]))
    expected["seed"] = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    expected["verifier key"] = format_verifier_key(signer.verifier_key)
    expected["signer key"] = format_signer_key(signer)
    assert values == expected


def test_the_checkpoint_of_the_page_is_signed_by_its_key() -> None:
    shown = re.search(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    signer = SignerKey("example.com/forecast-log", bytes.fromhex(page_values()["seed"]))
    root = merkle_tree_hash([leaf_hash(entry) for entry in page_entries()])
    checkpoint = Checkpoint(signer.name, 3, root)
    assert open_checkpoint(shown[1], [signer.verifier_key]) == checkpoint
    assert sign_checkpoint(checkpoint, signer) == shown[1]
