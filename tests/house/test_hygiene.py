"""What no file may hold: addresses of registries, paths of a machine, secrets, dead links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sources import REPOSITORY, list_files, short

# Patterns are written so that they do not match themselves.
REGISTRY_HOSTS = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|npmjs[.]com|crates[.]io|anaconda[.]org"
    r"|files[.]python|conda[.]io|proxy[.]golang"
)
MACHINE_PATHS = re.compile(r"/(?:work|home|root|Users|private)/[a-z.]|[A-Z]:\\Users|/(?:tmp)/[a-z]")
SECRETS = re.compile(
    r"\bsk-[A-Za-z0-9_-]{20,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|-----BEGIN (?:[A-Z]+ )*PRIVATE|\bxox[abp]-[0-9A-Za-z-]{10,}"
)
MADE_UP = re.compile(r"0{8}|0123456789|(.)\1{8}")
"""A key that a test invented shows it by a run of digits that no real one has."""
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

TEXTS = [path for path in list_files() if path.suffix not in {".png", ".db", ".typed"}]
PAGES = [path for path in TEXTS if path.suffix == ".md"]


@pytest.mark.parametrize("path", TEXTS, ids=short)
def test_a_file_holds_nothing_private(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for pattern in (REGISTRY_HOSTS, MACHINE_PATHS, SECRETS):
        found = [match[0] for match in pattern.finditer(text)]
        assert [match for match in found if not MADE_UP.search(match)] == []


@pytest.mark.parametrize(
    ("pattern", "sample"),
    [
        (REGISTRY_HOSTS, "https://pypi" + ".org/simple"),
        (MACHINE_PATHS, "see /home" + "/ann/x"),
        (SECRETS, "sk-" + "a" * 24),
        (SECRETS, "-----BEGIN EC " + "PRIVATE KEY-----"),
    ],
)
def test_the_patterns_can_find(pattern: re.Pattern[str], sample: str) -> None:
    assert pattern.search(sample)


def test_the_lock_holds_names_and_hashes_alone() -> None:
    requirement = re.compile(r"[a-z0-9.-]+==[0-9][0-9a-z.+!-]*(?: ; [^@:/]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
    lines = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not requirement.fullmatch(line) and not digest.fullmatch(line)]
    assert [
        line for line in odd if not line.lstrip().startswith("# via") and line.strip() != "#"
    ] == []
    assert len(lines) > 100


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_relative_links_lead_somewhere(path: Path) -> None:
    targets = (match[1] for match in LINK.finditer(path.read_text(encoding="utf-8")))
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        page = path.parent / file if file else path
        assert page.exists(), f"{short(path)} links to {target}"
        if anchor:
            assert anchor in anchors(page), f"{short(path)} links to {target}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def test_files_end_with_one_line_feed() -> None:
    wrong = [
        short(path)
        for path in TEXTS
        if (data := path.read_bytes()) and (not data.endswith(b"\n") or b"\r" in data)
    ]
    assert wrong == []
