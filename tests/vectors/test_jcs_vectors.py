"""JSON Canonicalization Scheme: the vectors beside RFC 8785 and those of the rfc8785 package."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_data import shared_file

from ledger.canonical import canonicalize, is_canonical, parse_strict

FOLDERS = ["data/vectors/json-canonicalization/testdata", "data/vectors/rfc8785.py/test/assets"]
NAMES = ["arrays", "french", "structures", "unicode", "values", "weird"]
README = "data/vectors/json-canonicalization/testdata/README.md"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_input_gives_its_output(folder: str, name: str) -> None:
    given = shared_file(f"{folder}/input/{name}.json").read_bytes()
    expected = bytes.fromhex(shared_file(f"{folder}/outhex/{name}.txt").read_text())
    assert canonicalize(parse_strict(given)) == expected
    assert expected == shared_file(f"{folder}/output/{name}.json").read_bytes()
    assert is_canonical(expected)
    assert is_canonical(given) == (given == expected)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_vector_is_left_out(folder: str) -> None:
    files: list[Path] = sorted(shared_file(f"{folder}/input").glob("*.json"))
    assert [path.stem for path in files] == NAMES


def es6_bits(fixed: list[int]) -> Iterator[int]:
    """The published sequence of doubles: fixed ones, small subnormal steps, then a hash chain."""
    yield from fixed
    yield from range(0x0010000000000000, 0x0010000000000000 + 2000)
    block = bytes(32)
    while True:
        block = hashlib.sha256(block).digest()
        for bits, number in zip(
            struct.unpack("<4Q", block), struct.unpack("<4d", block), strict=True
        ):
            if number != 0 and math.isfinite(number):
                yield bits


@pytest.mark.parametrize("count", [1_000, 10_000, 100_000])
def test_the_es6_number_sequence_hashes_as_published(count: int) -> None:
    """Its generator and checksums stand in the vectors' README; nothing of it is copied here."""
    page = shared_file(README).read_text()
    static = page[page.index("staticU64s = ") : page.index("staticF64s")]
    fixed = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{16})n", static)]
    published = re.search(rf"\| ([0-9a-f]{{64}}) \| {count} ", page)
    assert published is not None
    digest = hashlib.sha256()
    for bits in itertools.islice(es6_bits(fixed), count):
        number = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        digest.update(b"%x,%s\n" % (bits, canonicalize(number)))
    assert digest.hexdigest() == published[1]
