"""Prediction files: every spelling of a number, every way a file can be wrong, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from replay_ledgers import make_plan, method, plan_fields

from ledger.errors import BadInputError
from ledger.events.prediction import PredictionFrozen
from scoring import prediction_file
from scoring.prediction_file import parse_numbers_as_text, read_predictions

PLAN = make_plan(plan_fields(["c1"], [method("a"), method("b", extraction_rule="path-ledger/1")]))
METHODS = {spec.id: spec for spec in PLAN.methods}
HEAD = "card,method,p_yes\n"


def read(tmp_path: Path, content: str | bytes, name: str = "p.csv") -> list[PredictionFrozen]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_predictions(path, METHODS))


@pytest.mark.parametrize(
    ("spelt", "p_yes"),
    [
        ("0.5", "0.5"),
        (".5", "0.5"),
        ("0.50", "0.5"),
        ("+0.5", "0.5"),
        ("5e-1", "0.5"),
        ("5E-1", "0.5"),
        ("1", "1"),
        ("1.0", "1"),
        ("0", "0"),
        ("-0", "0"),
        ("1e-400", "0"),
        ("0.0000000005", "0"),
        ("0.0000000015", "0.000000002"),
        ("0.12345678949999", "0.123456789"),
    ],
)
def test_spellings_of_a_probability(tmp_path: Path, spelt: str, p_yes: str) -> None:
    (row,) = read(tmp_path, f"{HEAD}c1,a,{spelt}\n")
    assert (row.p_raw, row.p_yes) == (spelt, p_yes)
    (row,) = read(tmp_path, f'{{"card":"c1","method":"a","p_yes":"{spelt}"}}\n', "p.jsonl")
    assert (row.p_raw, row.p_yes) == (spelt, p_yes)


@pytest.mark.parametrize(
    "bad",
    ["45", "45%", "0.45%", "nan", "NaN", "inf", "-inf", "1.0000001", "-0.1", "1e3", "0,5", "1/2",
     "0x1", "½", "1_0", "1e9999", "0." + "1" * 80, "yes", "True", "= 1"],
)  # fmt: skip
def test_what_is_no_probability_is_refused_with_its_line(tmp_path: Path, bad: str) -> None:
    with pytest.raises(BadInputError, match=r"p\.csv:3: "):
        read(tmp_path, f'{HEAD}c0,b,0.1\nc1,a,"{bad}"\n')


@pytest.mark.parametrize("number", ["0.10", "1e-1", "1E-1", "0.1000000000000000055511151231257827"])
def test_a_json_number_keeps_its_spelling(tmp_path: Path, number: str) -> None:
    (row,) = read(tmp_path, f'{{"card":"c1","method":"a","p_yes":{number}}}', "p.jsonl")
    assert (row.p_raw, row.p_yes) == (number, "0.1")
    assert parse_numbers_as_text(f'{{"p":{number},"q":"0.1"}}') == {"p": number}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "true", "null", "[0.5]", '{"p":1}', "1e999"])
def test_a_json_value_that_is_no_probability_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(BadInputError, match=r"p\.jsonl:1: "):
        read(tmp_path, f'{{"card":"c1","method":"a","p_yes":{value}}}', "p.jsonl")


@pytest.mark.parametrize("missing", ["", "   "])
def test_a_missing_probability_is_an_error(tmp_path: Path, missing: str) -> None:
    with pytest.raises(BadInputError, match=r"p\.csv:2: p_yes is missing.*a gap is never 0\.5"):
        read(tmp_path, f"{HEAD}c1,a,{missing}\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark(tmp_path: Path, end: str, mark: str) -> None:
    text = f"{mark}card,method,p_yes{end}c1,a,0.1{end}c2,a,0.2{end}"
    rows = read(tmp_path, text)
    assert [(row.card_id, row.p_yes, row.origin.line) for row in rows] == [
        ("c1", "0.1", 2),
        ("c2", "0.2", 3),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_json_lines_with_either_end_and_blank_lines(tmp_path: Path, end: str) -> None:
    line = '{"card":"c%d","method":"a","p_yes":0.1}'
    rows = read(tmp_path, f"\ufeff{line % 1}{end}{end}{line % 2}{end}", "p.jsonl")
    assert [(row.card_id, row.origin.line) for row in rows] == [("c1", 1), ("c2", 3)]


def test_a_row_is_named_by_the_line_it_begins_on(tmp_path: Path) -> None:
    head = "card,method,p_yes,rejected_endpoints\n"
    many = '"x: first\nsecond\nthird"'
    rows = read(tmp_path, f"{head}c1,a,0.1,{many}\n\nc2,a,0.2,\n")
    assert [row.origin.line for row in rows] == [2, 6]
    with pytest.raises(BadInputError, match=r"p\.csv:2: '7' is not|p\.csv:2: the probability 7"):
        read(tmp_path, f"{head}c1,a,7,{many}\n")
    with pytest.raises(BadInputError, match=r"p\.csv:5: .*stands already on line 2"):
        read(tmp_path, f"{head}c1,a,0.1,{many}\nc1,a,0.1,\n")


def test_quotes_and_commas(tmp_path: Path) -> None:
    head = "card,method,p_yes,response_id\n"
    (row,) = read(tmp_path, f'{head}"c1","a","0.1","say ""hi"", then"\n')
    assert row.response_id == 'say "hi", then'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{HEAD}c1,a\n", r"p\.csv:2: has 2 fields, the header 3"),
        (f"{HEAD}c1,a,0.1,9\n", r"p\.csv:2: has 4 fields"),
        (f'{HEAD}c1,a,"0.1\n', r"p\.csv:2: is not CSV"),
        (f'{HEAD}c1,a,"0.1"x\n', r"p\.csv:2: is not CSV"),
        (f"{HEAD}c1,nobody,0.1\n", r"p\.csv:2: method 'nobody' is not registered"),
        (f"{HEAD}c 1,a,0.1\n", r"p\.csv:2: card has the value 'c 1'"),
        ("card,method\nc1,a\n", r"p\.csv:1: has no field 'p_yes'"),
        ("card,method,p_yes,confidence\n", r"p\.csv:1: has an unknown field 'confidence'"),
        ("card,method,p_yes,p_yes\n", r"p\.csv:1: has a field twice"),
        ("", r"holds no predictions"),
        (HEAD, r"holds no predictions"),
        (b"card,method,p_yes\nc1,a,\xff\n", r"is not UTF-8 at byte 23"),
        (f"{HEAD}c1,a,0.1\nc1,a,0.10\n", r"p\.csv:3: .*stands already on line 2"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"card":"c1","card":"c1","method":"a","p_yes":0.1}', "the key 'card' stands twice"),
        ('{"card":"c1","method":"a"}', "has no field 'p_yes'"),
        ("[1]", "is not an object"),
        ("{", "not JSON"),
        ('{"card":1,"method":"a","p_yes":0.1,"draw":1.5}', "draw '1.5' is not a whole number"),
        ('{"card":"c1","method":"a","p_yes":0.1,"draw":0}', "draw has the value"),
        ('{"card":"c1","method":"a","p_yes":0.1,"draw":"-1"}', "draw '-1' is not a whole"),
        ('{"card":"c1","method":"a","p_yes":0.1,"draw":12345678}', "is not a whole number"),
        ('{"card":"c1","method":"a","p_yes":0.1,"unresolved_mass":27}', "unresolved_mass: the"),
        ('{"card":"c1","method":"a","p_yes":0.1,"prompt_digest":"x"}', "prompt_digest has the"),
        ('{"card":"c1","method":"a","p_yes":0.1,"rejected_endpoints":"x"}', "has no reason"),
        ('{"card":"c1","method":"a","p_yes":0.1,"rejected_endpoints":"x y: z"}',
         r"rejected_endpoints \(id\) has the value 'x y'; expected an id"),
        ('{"card":"c1","method":"a","p_yes":0.1,"rejected_endpoints":"x:"}',
         r"rejected_endpoints \(reason\) has the value ''; expected a sentence"),
    ],
)  # fmt: skip
def test_a_broken_json_line_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(BadInputError, match=rf"p\.jsonl:1: .*{message}"):
        read(tmp_path, content, "p.jsonl")


def test_everything_optional(tmp_path: Path) -> None:
    line = (
        '{"card":"c1","method":"b","p_yes":"0.25","draw":2,"provider":"P","route":null,'
        '"requested_model":"m","resolved_model":"","prompt_version":"v1","response_id":"r",'
        '"unresolved_mass":0.27,"rejected_endpoints":"x: vague; y: leaks: it"}'
    )
    (row,) = read(tmp_path, line, "p.ndjson")
    assert (row.draw, row.extraction_rule, row.unresolved_mass_units) == (
        2, "path-ledger/1", 270_000_000)  # fmt: skip
    assert (row.model_route.provider, row.model_route.route) == ("P", None)
    assert (row.model_route.requested_model, row.model_route.resolved_model) == ("m", None)
    assert [(e.endpoint, e.reason) for e in row.rejected_endpoints] == [
        ("x", "vague"),
        ("y", "leaks: it"),
    ]
    assert row.attempt is None
    assert row.origin.kind == "import"


def test_draws_of_one_cell_are_different_rows(tmp_path: Path) -> None:
    assert len(read(tmp_path, "card,method,p_yes,draw\nc1,a,0.1,1\nc1,a,0.1,2\n")) == 2


def test_a_file_that_is_too_large_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_file, "MAX_BYTES", 10)
    with pytest.raises(BadInputError, match="at most 10 are read"):
        read(tmp_path, f"{HEAD}c1,a,0.1\n")


def test_other_names_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"neither \.csv nor \.jsonl"):
        read(tmp_path, HEAD, "p.txt")
    with pytest.raises(BadInputError, match="cannot be read"):
        list(read_predictions(tmp_path / "no.csv", METHODS))
