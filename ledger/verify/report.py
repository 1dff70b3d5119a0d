"""What a verification returns: findings, the verdict they add up to, and its exit code.

Normative: docs/spec/verification.md.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from ledger.verify.rules import RULES, Severity
from ledger.verify.text import plural

Verdict = Literal["tampered", "deviated", "unverifiable", "unanchored", "withheld", "sound"]

EXIT_CODES: dict[Verdict, int] = {
    "tampered": 1,
    "deviated": 4,
    "unverifiable": 3,
    "unanchored": 0,
    "withheld": 0,
    "sound": 0,
}
CANNOT_TELL = 3
MAX_FINDINGS_A_RULE = 100

_GRAVITY: dict[Severity, int] = {
    "tampered": 0,
    "deviated": 1,
    "unverifiable": 2,
    "withheld": 3,
    "note": 4,
}
_RULE_ORDER = {rule: place for place, rule in enumerate(RULES)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of one rule; `seq` is None where no single event is at fault."""

    rule: str
    severity: Severity
    seq: int | None
    message: str

    def to_json(self) -> dict[str, str | int | None]:
        """Return the finding as JSON values."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "seq": self.seq,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        verdict: one of the six of docs/spec/verification.md.
        size: number of events; None where the file could not be read.
        root: Merkle root over them, 64 hexadecimal digits; None where there is none.
        findings: sorted by seq, at one seq by gravity.
        proved: what the log shows, each sentence with its evidence.
        not_proved: what it does not.
        require_anchor: whether `unanchored` counts as failure.
    """

    verdict: Verdict
    size: int | None
    root: str | None
    findings: tuple[Finding, ...]
    proved: tuple[str, ...]
    not_proved: tuple[str, ...]
    require_anchor: bool = False

    @property
    def exit_code(self) -> int:
        """0 sound, withheld or unanchored; 1 tampered; 3 cannot tell; 4 deviated."""
        if self.verdict == "unanchored" and self.require_anchor:
            return CANNOT_TELL
        return EXIT_CODES[self.verdict]

    def to_json(self) -> str:
        """Write the result as one line of JSON."""
        return json.dumps(
            {
                "verdict": self.verdict,
                "size": self.size,
                "root": self.root,
                "findings": [finding.to_json() for finding in self.findings],
                "proved": self.proved,
                "not_proved": self.not_proved,
            }
        )


class Findings:
    """Collects findings, and stops a damaged ledger from filling the memory with them."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._counts: Counter[str] = Counter()

    def add(
        self, rule: str, seq: int | None, message: str, *, severity: Severity | None = None
    ) -> None:
        """Note a breach; `severity` is given where it is not the rule's own."""
        self._counts[rule] += 1
        if self._counts[rule] <= MAX_FINDINGS_A_RULE:
            self._kept.append(Finding(rule, severity or RULES[rule].severity, seq, message))

    def has(self, *severities: Severity) -> bool:
        """Say whether there is a finding of one of these severities."""
        return any(finding.severity in severities for finding in self._kept)

    def of(self, rule: str) -> list[Finding]:
        """Return the kept findings of a rule."""
        return [finding for finding in self._kept if finding.rule == rule]

    def sorted(self) -> tuple[Finding, ...]:
        """Return the findings by seq, then gravity; those without a seq last."""
        more = [
            Finding(
                rule,
                RULES[rule].severity,
                None,
                f"{plural(count, 'finding')} in all; the first {MAX_FINDINGS_A_RULE} are listed",
            )
            for rule, count in self._counts.items()
            if count > MAX_FINDINGS_A_RULE
        ]
        return tuple(sorted(self._kept + more, key=_place))


def judge(findings: tuple[Finding, ...], *, anchored: bool) -> Verdict:
    """Return the verdict: the gravest finding decides (docs/spec/verification.md, Verdicts)."""
    worst = {finding.severity for finding in findings}
    if "tampered" in worst:
        return "tampered"
    if "deviated" in worst:
        return "deviated"
    if "unverifiable" in worst:
        return "unverifiable"
    if not anchored:
        return "unanchored"
    return "withheld" if "withheld" in worst else "sound"


def _place(finding: Finding) -> tuple[float, int, int]:
    seq = float("inf") if finding.seq is None else finding.seq
    return seq, _GRAVITY[finding.severity], _RULE_ORDER[finding.rule]
