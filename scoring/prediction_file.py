"""Read predictions from a CSV or JSONL file: whole and strict, or not at all.

One row a cell. `card`, `method` and `p_yes` are required. Optional: `draw` (default 1), `provider`,
`route`, `requested_model`, `resolved_model`, `prompt_version`, `prompt_digest`, `response_id`,
`unresolved_mass` (0 to 1) and `rejected_endpoints` (`id: reason; id: reason`). What is empty is
recorded as not recorded; a missing probability is an error, never 0.5
(docs/spec/events.md, `prediction.frozen`). Lines are counted from 1: a row is named by the line of
the file that it begins on, also where a quoted field holds line feeds. Blank lines are no rows.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError

from ledger.canonical import parse_strict
from ledger.decimals import parse_units, round_probability
from ledger.errors import BadInputError
from ledger.events.base import ModelRoute
from ledger.events.plan import MethodSpec
from ledger.events.prediction import Origin, PredictionFrozen, RejectedEndpoint
from ledger.field_errors import describe_problem

REQUIRED = ("card", "method", "p_yes")
OPTIONAL = (
    "draw",
    "provider",
    "route",
    "requested_model",
    "resolved_model",
    "prompt_version",
    "prompt_digest",
    "response_id",
    "unresolved_mass",
    "rejected_endpoints",
)
MAX_BYTES = 2 * 1024 * 1024 * 1024

# Which model a validation error speaks of, and the file's name for a field of it.
_PARTS: dict[str, type[BaseModel]] = {
    model.__name__: model for model in (PredictionFrozen, ModelRoute, RejectedEndpoint)
}
_COLUMN_OF = {
    "card_id": "card",
    "p_raw": "p_yes",
    "endpoint": "rejected_endpoints (id)",
    "reason": "rejected_endpoints (reason)",
}

Row = Mapping[str, str]


def read_predictions(path: Path, methods: Mapping[str, MethodSpec]) -> Iterator[PredictionFrozen]:
    """Yield the file's predictions in order; the caller writes nothing until all were read.

    Args:
        path: `*.csv` (header line, UTF-8) or `*.jsonl` (one object a line).
        methods: the registered methods, which give each row its extraction rule.

    Raises:
        BadInputError: with the line number, what is wrong and what to do.
    """
    read_rows = _READERS.get(path.suffix)
    if read_rows is None:
        raise BadInputError(
            "is neither .csv nor .jsonl.", where=str(path), remedy="Name the file by its format."
        )
    text, digest = _read_text(path)
    rows = read_rows(path, text)
    seen: dict[tuple[str, str, str], int] = {}
    for line, row in rows:
        where = f"{path}:{line}"
        prediction = _prediction(row, where, methods, digest, line)
        cell = (prediction.method, prediction.card_id, str(prediction.draw))
        if cell in seen:
            raise BadInputError(
                f"method {cell[0]}, card {cell[1]}, draw {cell[2]} stands already on line"
                f" {seen[cell]}",
                where=where,
                remedy="Keep one row a cell.",
            )
        seen[cell] = line
        yield prediction
    if not seen:
        raise BadInputError("holds no predictions", where=str(path))


def _read_text(path: Path) -> tuple[str, str]:
    """Return a file's text without a byte order mark, and the SHA-256 of its bytes."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise BadInputError(
                f"has {size} bytes; at most {MAX_BYTES} are read.",
                where=str(path),
                remedy="Split the file.",
            )
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(
            f"cannot be read: {error.strerror}.", where=str(path), remedy="Name a readable file."
        ) from error
    try:
        return data.decode("utf-8-sig"), hashlib.sha256(data).hexdigest()
    except UnicodeDecodeError as error:
        raise BadInputError(
            f"is not UTF-8 at byte {error.start}.", where=str(path), remedy="Save it as UTF-8."
        ) from error


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    begins = 1
    try:
        for fields in reader:
            where, line, begins = f"{path}:{begins}", begins, reader.line_num + 1
            if not fields:
                continue
            if not header:
                header = fields
                _check_keys(header, where)
            elif len(fields) != len(header):
                raise BadInputError(
                    f"has {len(fields)} fields, the header {len(header)}.",
                    where=where,
                    remedy="Quote fields that hold commas.",
                )
            else:
                yield line, dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise BadInputError(
            f"is not CSV: {error}.", where=f"{path}:{begins}", remedy="Correct the quoting."
        ) from error


def _jsonl_rows(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip():
            continue
        where = f"{path}:{line}"
        try:
            value = parse_strict(content)
        except BadInputError as error:
            raise BadInputError(error.what, where=where) from error
        if not isinstance(value, dict):
            raise BadInputError("is not an object", where=where)
        _check_keys(list(value), where)
        # The number as it was written: a float's own digits are not the file's.
        digits = parse_numbers_as_text(content)
        yield line, {key: _as_text(item, digits.get(key), where) for key, item in value.items()}


def parse_numbers_as_text(content: str) -> dict[str, str]:
    """Return the numbers of a flat JSON object exactly as they are spelt there.

    The content has passed `parse_strict`: no duplicate keys, no NaN, no integer beyond 2^53-1.
    """
    read = json.loads(content, parse_float=_Spelt, parse_int=_Spelt)
    return {key: str(item) for key, item in read.items() if isinstance(item, _Spelt)}


class _Spelt(str):
    """A number's own spelling, told apart from a text."""

    __slots__ = ()


def _as_text(item: object, spelt: str | None, where: str) -> str:
    if item is None:
        return ""
    if spelt is not None:
        return spelt
    if isinstance(item, str):
        return item
    raise BadInputError(f"{item!r} is neither text nor a number", where=where)


def _check_keys(keys: list[str], where: str) -> None:
    for key in REQUIRED:
        if key not in keys:
            raise BadInputError(
                f"has no field {key!r}", where=where, remedy=f"Required: {', '.join(REQUIRED)}."
            )
    for key in keys:
        if key not in REQUIRED and key not in OPTIONAL:
            raise BadInputError(
                f"has an unknown field {key!r}",
                where=where,
                remedy=f"Known: {', '.join(OPTIONAL)}.",
            )
    if len(set(keys)) != len(keys):
        raise BadInputError("has a field twice", where=where)


def _prediction(
    row: Row, where: str, methods: Mapping[str, MethodSpec], digest: str, line: int
) -> PredictionFrozen:
    method = methods.get(row["method"])
    if method is None:
        raise BadInputError(
            f"method {row['method']!r} is not registered",
            where=where,
            remedy=f"Registered: {', '.join(methods)}.",
        )
    if not row["p_yes"].strip():
        raise BadInputError(
            "p_yes is missing", where=where, remedy="Leave the row out; a gap is never 0.5."
        )
    try:
        p_yes = round_probability(row["p_yes"].strip())
        return PredictionFrozen(
            method=row["method"],
            card_id=row["card"],
            draw=_draw(row.get("draw", "")),
            attempt=None,
            p_raw=row["p_yes"].strip(),
            p_yes=p_yes,
            unresolved_mass_units=_mass(row.get("unresolved_mass", "")),
            extraction_rule=method.extraction_rule,
            model_route=ModelRoute(
                provider=row.get("provider") or None,
                route=row.get("route") or None,
                requested_model=row.get("requested_model") or None,
                resolved_model=row.get("resolved_model") or None,
            ),
            prompt_version=row.get("prompt_version") or None,
            prompt_digest=row.get("prompt_digest") or None,
            response_id=row.get("response_id") or None,
            rejected_endpoints=_rejected(row.get("rejected_endpoints", "")),
            origin=Origin(kind="import", file_sha256=digest, line=line),
        )
    except ValidationError as error:
        field, problem = describe_problem(error, _PARTS[error.title])
        raise BadInputError(f"{_COLUMN_OF.get(field, field)} {problem}", where=where) from error
    except BadInputError as error:
        raise BadInputError(error.what, where=where, remedy=error.remedy) from error


def _draw(text: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or not text.isascii() or len(text) > 7:
        raise BadInputError(f"draw {text!r} is not a whole number from 1")
    return int(text)


def _mass(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return parse_units(round_probability(text.strip()))
    except BadInputError as error:
        raise BadInputError(f"unresolved_mass: {error.what}", remedy=error.remedy) from error


def _rejected(text: str) -> tuple[RejectedEndpoint, ...]:
    out: list[RejectedEndpoint] = []
    for item in filter(None, (part.strip() for part in text.split(";"))):
        endpoint, separator, reason = item.partition(":")
        if not separator:
            raise BadInputError(
                f"rejected endpoint {item!r} has no reason", remedy="Write id: reason."
            )
        out.append(RejectedEndpoint(endpoint=endpoint.strip(), reason=reason.strip()))
    return tuple(out)


_READERS: dict[str, Callable[[Path, str], Iterator[tuple[int, Row]]]] = {
    ".csv": _csv_rows,
    ".jsonl": _jsonl_rows,
    ".ndjson": _jsonl_rows,
}
