"""What the file itself has to look like: plain tables, whole columns, guards (`store.*` rules).

A view, a virtual table or a computed column could show one reader other rows than another, so the
two tables have to be plain ones.
"""

from __future__ import annotations

import re

from ledger.verify.reading import LedgerFile
from ledger.verify.report import MAX_FINDINGS_A_RULE, Findings

_COLUMNS = {
    "events": {
        "seq": "INTEGER",
        "envelope": "BLOB",
        "leaf": "BLOB",
        "prev": "BLOB",
        "type": "TEXT",
        "stream": "TEXT",
        "stream_seq": "INTEGER",
        "idem_key": "TEXT",
    },
    "payloads": {"seq": "INTEGER", "salt": "BLOB", "bytes": "BLOB"},
}
_UNIQUE = (("prev",), ("stream", "stream_seq"), ("idem_key",))
_GUARD = re.compile(
    r"\s*CREATE TRIGGER \S+ BEFORE (UPDATE|DELETE) ON events\s+BEGIN\s+"
    r"SELECT RAISE\s*\(\s*ABORT\s*,\s*'[^']*'\s*\)\s*;\s*END\s*",
    re.IGNORECASE,
)


def check_tables(file: LedgerFile, findings: Findings) -> bool:
    """Report missing or odd tables; say whether they can be read at all."""
    plain = {name for kind, name, _, page, _ in file.schema() if kind == "table" and page > 0}
    wrong = [what for table in _COLUMNS if (what := _table_fault(file, table, plain))]
    for what in wrong:
        findings.add("store.table", None, what)
    return not wrong


def _table_fault(file: LedgerFile, table: str, plain: set[str]) -> str:
    if table not in plain:
        return f"there is no plain table {table}"
    due, columns = _COLUMNS[table], file.columns(table)
    if missing := due.keys() - {name for name, *_ in columns}:
        return f"the table {table} has no column {', '.join(sorted(missing))}"
    found = {name: kind for name, kind, _, _ in columns}
    keys = [name for name, _, in_key, _ in columns if in_key]
    computed = any(is_computed for *_, is_computed in columns)
    if found != due or keys != ["seq"] or computed or not file.is_numbered(table):
        return f"the columns of {table} are not as specified"
    return ""


def check_values(file: LedgerFile, findings: Findings) -> None:
    """Report values of wrong types, and payload rows that belong to no event."""
    for seq, table in file.mistyped(MAX_FINDINGS_A_RULE + 1):
        findings.add("store.table", seq, f"a value of its row in {table} has the wrong type")
    for seq in file.orphans(MAX_FINDINGS_A_RULE + 1):
        findings.add("store.orphan", seq, "a row in payloads belongs to no event")


def check_guards(file: LedgerFile, findings: Findings) -> None:
    """Note guards that the writer puts into a file and that are not there any more."""
    guards, others = set(), []
    for kind, name, table, _, sql in file.schema():
        if kind == "trigger" and table in _COLUMNS:
            match = _GUARD.fullmatch(sql)
            if match:
                guards.add(match[1].upper())
            else:
                others.append(name)
    for lost in sorted({"UPDATE", "DELETE"} - guards):
        findings.add("store.guard", None, f"no trigger refuses {lost} on events")
    for name in sorted(others):
        findings.add("store.guard", None, f"a trigger that is not the ledger's: {ascii(name)[:80]}")
    present = set(file.unique_indexes("events"))
    for columns in _UNIQUE:
        if columns not in present:
            text = ", ".join(columns)
            findings.add("store.guard", None, f"no unique index on events ({text})")
