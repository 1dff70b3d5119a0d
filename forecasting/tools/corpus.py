"""A local search tool: dated documents in a folder or in an SQLite FTS5 table; no key, no network.

It speaks the same port as the paid tools, so that a timeboxed backtest runs offline and the same
every time: ties in rank are broken by the documents' order, and the digest of the corpus stands
among the limits of each call. Documents later than as-of are left out before ranking counts, and
what remains is judged by `forecasting.timebox` like anything else.

A folder holds `.jsonl` (a document a line), `.json` (one document), `.md` and `.txt` (a YAML header
between two lines `---`, then the text), in subfolders too. A document has `title`, `text` and, if
known, `url`, `published`, `crawled`, `snapshot`. A table has columns of these names.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from forecasting.ports import Found, ToolAnswer, ToolRequest, ToolSpec
from forecasting.providers.wire import failed, to_raw
from forecasting.timebox import read_times
from forecasting.tools.arguments import SEARCH_PARAMETERS, SearchArguments, check_arguments
from forecasting.tools.exchange import Timer, failed_answer
from ledger.canonical import canonicalize, parse_strict
from ledger.errors import BadInputError
from ledger.events.base import RawBytes
from ledger.strict_yaml import parse_yaml

COLUMNS: Final = ("title", "text", "url", "published", "crawled", "snapshot")
"""Fields of a document; the first two must be there and the first three are texts."""

SPEC: Final = ToolSpec(
    name="corpus_search",
    description="Search a collection of documents up to the as-of date.",
    parameters=SEARCH_PARAMETERS,
)

_SCHEMA = (
    "CREATE VIRTUAL TABLE documents USING fts5(title, text, url UNINDEXED, published UNINDEXED,"
    " crawled UNINDEXED, snapshot UNINDEXED, tokenize='unicode61 remove_diacritics 2')"
)
_INSERT = (
    "INSERT INTO documents (title, text, url, published, crawled, snapshot) VALUES (?,?,?,?,?,?)"
)
_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_WORD = re.compile(r"\w+")
_MAX_WORDS = 32
_MAX_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Corpus:
    """An open corpus: a connection, the table with its columns, and the SHA-256 of what it holds.

    The digest of a folder covers its documents as canonical JSON lines in order of path and line;
    that of a database covers the octets of the file.
    """

    connection: sqlite3.Connection
    table: str
    columns: tuple[str, ...]
    digest: str


def open_corpus(path: Path, *, table: str = "documents") -> Corpus:
    """Open a folder, which is indexed in memory, or an SQLite file, which is only read.

    Args:
        path: folder or file.
        table: name of the FTS5 table; for a file only.

    Raises:
        BadInputError: nothing there, a file that is no document, a table that is missing, is not
            FTS5 or lacks title or text; one sentence with the file and line.
    """
    if path.is_dir():
        return _index_folder(path)
    if not path.is_file():
        raise BadInputError("no such corpus", where=str(path), remedy="Name a folder or a file.")
    return _open_database(path, table)


class CorpusTool:
    """The search tool `corpus_search`.

    Args:
        corpus: what `open_corpus` gave; `close` closes it.
        timer: measures latency.
        max_results: documents at most, 1 to 100; as many undated ones may come on top.
    """

    def __init__(self, corpus: Corpus, *, timer: Timer, max_results: int = 8) -> None:
        self._corpus = corpus
        self._timer = timer
        self._max_results = max_results
        self._lock = asyncio.Lock()

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return SPEC

    async def search(self, request: ToolRequest) -> ToolAnswer:
        """Search once, in a thread: a common word in 100,000 documents takes tenths of a second."""
        try:
            arguments = check_arguments(request.arguments, as_of=request.as_of)
            expression = match_expression(arguments.query)
        except BadInputError as error:
            return failed_answer(failed("bad_request", str(error)), None, {})
        limits = {
            "not_after": request.as_of,
            "max_results": str(self._max_results),
            "corpus_sha256": self._corpus.digest,
        }
        if arguments.since is not None:
            limits["since"] = arguments.since
        began = self._timer()
        try:
            # One connection: SQLite would serialise the calls anyway.
            async with self._lock:
                found, later = await asyncio.to_thread(
                    self._pick, expression, arguments, request.as_of
                )
        except sqlite3.Error as error:
            return failed_answer(failed("server_error", f"SQLite: {error}"), None, limits)
        rows = [{**asdict(item), "unreadable_times": [*item.unreadable_times]} for item in found]
        return ToolAnswer(
            found=found,
            failure=None,
            limits_sent=limits,
            cost_usd="0",
            raw_answer=to_raw(canonicalize(rows)),
            latency_ms=max(0, round((self._timer() - began) * 1000)),
            notices=(f"{later} better matches lie after as-of and were left out",) if later else (),
        )

    async def close(self) -> None:
        """Close the corpus."""
        self._corpus.connection.close()

    def _pick(
        self, expression: str, arguments: SearchArguments, as_of: str
    ) -> tuple[tuple[Found, ...], int]:
        """Take documents by rank, skipping those later than as-of; also say how many were."""
        found: list[Found] = []
        dated = undated = later = 0
        for row in _ranked_rows(self._corpus, expression):
            item = _to_found(row)
            claims = [time for time in (item.published, item.snapshot) if time is not None]
            if any(time > as_of for time in claims):
                later += 1
                continue
            if arguments.since and item.published and item.published[:10] < arguments.since:
                continue
            if claims and not item.unreadable_times:
                dated += 1
            elif undated == self._max_results:
                continue
            else:
                undated += 1
            found.append(item)
            if dated == self._max_results:
                break
        return tuple(found), later


def read_recorded(raw: RawBytes) -> tuple[Found, ...]:
    """Read the documents out of an answer that an event holds: what `search` found then.

    Raises:
        BadInputError: it is no answer of this tool.
    """
    rows = parse_strict(raw.data)
    try:
        return tuple(
            Found(**{**row, "unreadable_times": tuple(row["unreadable_times"])}) for row in rows
        )
    except (TypeError, KeyError) as error:
        raise BadInputError("the recorded answer is no list of documents") from error


def match_expression(query: str) -> str:
    """Turn a query into an FTS5 expression: any of its words, none of FTS5's syntax.

    Raises:
        BadInputError: the query holds no word.
    """
    words = [word for word in _WORD.findall(query) if word.strip("_")][:_MAX_WORDS]
    if not words:
        raise BadInputError("the query holds no word", remedy="Give at least one word.")
    return " OR ".join(f'"{word}"' for word in words)


def read_documents(folder: Path) -> Iterator[dict[str, str | None]]:
    """Read a folder's documents in order of path and line; each has exactly the keys of COLUMNS.

    Raises:
        BadInputError: a file that is no document; hidden files are passed over.
    """
    readers = {".jsonl": _read_lines, ".json": _read_json, ".md": _read_page, ".txt": _read_page}
    for file in sorted(folder.rglob("*")):
        if file.is_dir() or any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        reader = readers.get(file.suffix)
        if reader is None:
            raise BadInputError(
                "does not belong to a corpus.",
                where=str(file),
                remedy=f"Documents are {', '.join(readers)} files.",
            )
        yield from reader(file)


def _index_folder(folder: Path) -> Corpus:
    documents = list(read_documents(folder))
    if not documents:
        raise BadInputError("holds no document", where=str(folder), remedy="Add documents.")
    lines = b"".join(canonicalize(document) + b"\n" for document in documents)
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute(_SCHEMA)
    rows = (tuple(document[name] for name in COLUMNS) for document in documents)
    connection.executemany(_INSERT, rows)
    connection.commit()
    return Corpus(connection, "documents", COLUMNS, hashlib.sha256(lines).hexdigest())


def _open_database(path: Path, table: str) -> Corpus:
    if not _TABLE_NAME.fullmatch(table):
        raise BadInputError(f"{table!r} is not a table name", where=str(path))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    uri = f"{path.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    try:
        return Corpus(connection, table, _check_table(connection, path, table), digest)
    except (BadInputError, sqlite3.Error) as error:
        connection.close()
        if isinstance(error, BadInputError):
            raise
        raise BadInputError(f"is no corpus: {error}", where=str(path)) from error


def _check_table(connection: sqlite3.Connection, path: Path, table: str) -> tuple[str, ...]:
    query = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    row = connection.execute(query, (table,)).fetchone()
    if row is None or not re.match(r"(?is)CREATE\s+VIRTUAL\s+TABLE\b.*\bUSING\s+fts5\b", row[0]):
        raise BadInputError(
            f"has no FTS5 table {table!r}", where=str(path), remedy="Name the table to search."
        )
    names = {str(column[1]) for column in connection.execute(f'PRAGMA table_info("{table}")')}
    if missing := [name for name in COLUMNS[:2] if name not in names]:
        raise BadInputError(f"the table {table!r} has no column {missing[0]!r}", where=str(path))
    return tuple(name for name in COLUMNS if name in names)


def _ranked_rows(corpus: Corpus, expression: str) -> Iterator[dict[str, Any]]:
    listed = ", ".join(f'"{name}"' for name in corpus.columns)
    query = (
        f'SELECT {listed} FROM "{corpus.table}" WHERE "{corpus.table}" MATCH ? ORDER BY rank, rowid'
    )
    for row in corpus.connection.execute(query, (expression,)):
        yield dict(zip(corpus.columns, row, strict=True))


def _to_found(row: dict[str, Any]) -> Found:
    times = read_times(row.get("published"), row.get("crawled"), row.get("snapshot"))
    texts = [None if (text := row.get(name)) is None else str(text) for name in COLUMNS[:3]]
    return Found(
        url=texts[2],
        title=texts[0] or "",
        text=(texts[1] or "")[:_MAX_CHARACTERS],
        published=times.published,
        crawled=times.crawled,
        snapshot=times.snapshot,
        unreadable_times=times.unreadable,
    )


def _read_lines(file: Path) -> Iterator[dict[str, str | None]]:
    for number, line in enumerate(_read_text(file).split("\n"), start=1):
        if line.strip():
            yield _check_document(_parse(line, f"{file}:{number}"), f"{file}:{number}")


def _read_json(file: Path) -> Iterator[dict[str, str | None]]:
    yield _check_document(_parse(_read_text(file), str(file)), str(file))


def _read_page(file: Path) -> Iterator[dict[str, str | None]]:
    parts = re.split(r"(?m)^---[ \t]*$\n?", _read_text(file), maxsplit=2)
    if len(parts) != 3 or parts[0].strip():
        raise BadInputError(
            "has no header", where=str(file), remedy="Begin with YAML between two lines of ---."
        )
    header = parse_yaml(parts[1], name=str(file))
    if not isinstance(header, dict) or "text" in header:
        raise BadInputError("the header is no mapping, or holds the text", where=str(file))
    yield _check_document({"title": file.stem, **header, "text": parts[2].strip()}, str(file))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"cannot be read as UTF-8: {error}", where=str(file)) from error


def _parse(text: str, where: str) -> object:
    try:
        return parse_strict(text)
    except BadInputError as error:
        raise BadInputError(error.what, where=where, remedy=error.remedy) from error


def _check_document(value: object, where: str) -> dict[str, str | None]:
    if not isinstance(value, dict):
        raise BadInputError("is no document", where=where, remedy="Give an object.")
    if unknown := _first(value.keys() - set(COLUMNS)):
        raise BadInputError(
            f"the field {unknown[:60]!r} is not one of a document's.",
            where=where,
            remedy=f"Its fields are {', '.join(COLUMNS)}.",
        )
    for name in COLUMNS:
        item = value.get(name)
        if not isinstance(item, str) and (item is not None or name in COLUMNS[:2]):
            raise BadInputError(f"{name} is not text", where=where, remedy="Give text.")
    return {name: value.get(name) for name in COLUMNS}


def _first(names: Iterable[str]) -> str:
    return min(names, default="")
