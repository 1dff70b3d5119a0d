"""`ledger predictions import`: a wrong row is named by its line, and nothing is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from console import PILOT, Inside, Stage, contents, is_one_sentence, ledger, must

HEAD = "card,method,p_yes\n"
GOOD = HEAD + "001,direct_gpt54,0.1035\n002,direct_gpt54,0.25\n"


def csv(row: str) -> bytes:
    """Two good rows and then, on line 4, the row in question."""
    return (GOOD + row + "\n").encode()


def jsonl(row: str) -> bytes:
    """A good row and then, on line 2, the row in question."""
    return ('{"card":"001","method":"direct_gpt54","p_yes":0.1035}\n' + row + "\n").encode()


BAD: tuple[tuple[str, str, bytes, str], ...] = (
    ("no probability", "a.csv:4", csv("003,direct_gpt54,"), "p_yes is missing"),
    ("a blank probability", "a.csv:4", csv("003,direct_gpt54,  "), "p_yes is missing"),
    ("NaN", "a.csv:4", csv("003,direct_gpt54,NaN"), "'NaN' is not a probability"),
    ("nan", "a.csv:4", csv("003,direct_gpt54,nan"), "'nan' is not a probability"),
    ("None", "a.csv:4", csv("003,direct_gpt54,None"), "'None' is not a probability"),
    ("infinity", "a.csv:4", csv("003,direct_gpt54,inf"), "'inf' is not a probability"),
    ("percent", "a.csv:4", csv("003,direct_gpt54,45%"), "'45%' is not a probability"),
    ("percentage", "a.csv:4", csv("003,direct_gpt54,45"), "outside [0, 1]"),
    ("negative", "a.csv:4", csv("003,direct_gpt54,-0.1"), "outside [0, 1]"),
    ("above one", "a.csv:4", csv("003,direct_gpt54,1.0000000001"), "outside [0, 1]"),
    ("hexadecimal", "a.csv:4", csv("003,direct_gpt54,0x1p-2"), "is not a probability"),
    ("underscore", "a.csv:4", csv("003,direct_gpt54,0.1_0"), "is not a probability"),
    ("other digits", "a.csv:4", csv("003,direct_gpt54,0.\u0665"), "is not a probability"),
    ("decimal comma", "a.csv:4", csv('003,direct_gpt54,"0,5"'), "is not a probability"),
    ("huge exponent", "a.csv:4", csv("003,direct_gpt54,1e999"), "outside [0, 1]"),
    ("duplicate row", "a.csv:4", csv("001,direct_gpt54,0.1035"), "already on line 2"),
    ("conflicting row", "a.csv:4", csv("001,direct_gpt54,0.9"), "already on line 2"),
    ("unknown method", "a.csv:4", csv("003,oracle,0.5"), "method 'oracle' is not registered"),
    ("unknown card", "card 999", csv("999,direct_gpt54,0.5"), "is not frozen"),
    ("constant method", "uniform", csv("003,uniform,0.5"), "order.method-registered"),
    ("empty card", "a.csv:4", csv(",direct_gpt54,0.5"), "card"),
    ("too few fields", "a.csv:4", csv("003,direct_gpt54"), "has 2 fields, the header 3"),
    ("too many fields", "a.csv:4", csv("003,direct_gpt54,0.5,x"), "has 4 fields, the header 3"),
    ("open quote", "a.csv:4", csv('003,"direct_gpt54,0.5'), "is not CSV"),
    ("huge field", "a.csv:4", csv("003,direct_gpt54," + "9" * 200_000), "a.csv:4"),
    ("wrong header", "a.csv:1", b"id,model,prob\n001,direct_gpt54,0.5\n", "no field 'card'"),
    ("unknown column", "a.csv:1", b"card,method,p_yes,mood\n", "unknown field 'mood'"),
    ("column twice", "a.csv:1", b"card,method,p_yes,p_yes\n", "field twice"),
    ("header alone", "a.csv", HEAD.encode(), "holds no predictions"),
    ("nothing", "a.csv", b"", "holds no predictions"),
    ("latin-1", "a.csv", GOOD.encode() + "003,m\xe9thode,0.5\n".encode("latin-1"), "not UTF-8"),
    ("UTF-16", "a.csv", GOOD.encode("utf-16"), "not UTF-8"),
    ("zero bytes", "a.csv", b"\0" * 64, "a.csv"),
    ("draw zero", "a.csv:2", b"card,method,p_yes,draw\n001,direct_gpt54,0.5,0\n", "draw"),
    ("draw two", "draw 2", b"card,method,p_yes,draw\n001,direct_gpt54,0.5,2\n", "order.draw-reg"),
    ("draw x", "a.csv:2", b"card,method,p_yes,draw\n001,direct_gpt54,0.5,x\n", "draw 'x'"),
    (
        "another model",
        "direct_gpt54",
        b"card,method,p_yes,requested_model\n001,direct_gpt54,0.5,GPT-4\n",
        "order.route-registered",
    ),
    ("no JSON", "a.jsonl:2", jsonl("card 003"), "not JSON"),
    ("a JSON list", "a.jsonl:2", jsonl("[1, 2]"), "is not an object"),
    (
        "a JSON key twice",
        "a.jsonl:2",
        jsonl('{"card":"002","card":"003","method":"direct_gpt54","p_yes":0.5}'),
        "'card' stands twice",
    ),
    (
        "JSON NaN",
        "a.jsonl:2",
        jsonl('{"card":"002","method":"direct_gpt54","p_yes":NaN}'),
        "NaN",
    ),
    (
        "JSON null",
        "a.jsonl:2",
        jsonl('{"card":"002","method":"direct_gpt54","p_yes":null}'),
        "p_yes is missing",
    ),
    (
        "JSON truth",
        "a.jsonl:2",
        jsonl('{"card":"002","method":"direct_gpt54","p_yes":true}'),
        "neither text nor a number",
    ),
    (
        "JSON half a pair",
        "a.jsonl:2",
        jsonl('{"card":"\\ud800","method":"direct_gpt54","p_yes":0.5}'),
        "surrogate",
    ),
    ("deep JSON", "a.jsonl:2", jsonl("[" * 100_000), "a.jsonl:2"),
    ("JSON without p_yes", "a.jsonl:2", jsonl('{"card":"002","method":"x"}'), "no field 'p_yes'"),
    ("another format", "a.xlsx", b"PK", "neither .csv nor .jsonl"),
)


@pytest.mark.parametrize("case", BAD, ids=[row[0] for row in BAD])
def test_a_wrong_file_is_refused_as_a_whole(
    stage: Stage, inside: Inside, case: tuple[str, str, bytes, str]
) -> None:
    name, place, data, phrase = case
    folder = stage("planned")
    suffix = ".jsonl" if ".jsonl" in place or "JSON" in name else ".csv"
    file = folder / ("a.xlsx" if place == "a.xlsx" else f"a{suffix}")
    file.write_bytes(data)
    before = contents(folder)
    run = inside("predictions", "import", file.name, cwd=folder)
    assert (run.code, run.out) == (2, "")
    assert is_one_sentence(run.err), run.err
    assert phrase in run.err
    assert place in run.err
    assert len(run.err) < 600
    assert contents(folder) == before


@pytest.mark.parametrize(
    "data",
    [
        GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.rstrip("\n").encode(),
        b'"card","method","p_yes"\n"001","direct_gpt54","1.035e-1"\n"002","direct_gpt54",".25"\n',
    ],
    ids=["plain", "Windows line ends", "byte order mark", "no last line end", "quoted"],
)
def test_spellings_of_the_same_file_freeze_the_same_values(stage: Stage, data: bytes) -> None:
    folder = stage("planned")
    (folder / "a.csv").write_bytes(data)
    assert "froze 2 predictions" in must("predictions", "import", "a.csv", cwd=folder).out
    frozen = [must("show", seq, "--json", cwd=folder).json["payload"] for seq in (50, 51)]
    assert [row["p_yes"] for row in frozen] == ["0.1035", "0.25"]
    assert [row["card_id"] for row in frozen] == ["001", "002"]
    assert all(row["draw"] == 1 and row["origin"]["kind"] == "import" for row in frozen)


def test_jsonl_keeps_the_number_as_it_was_written(stage: Stage) -> None:
    folder = stage("planned")
    row = '{"card": "001", "method": "direct_gpt54", "p_yes": 0.10350, "draw": 1}'
    (folder / "a.jsonl").write_text(row + "\n\n", encoding="utf-8")
    must("predictions", "import", "a.jsonl", cwd=folder)
    frozen = must("show", 50, "--json", cwd=folder).json["payload"]
    assert (frozen["p_raw"], frozen["p_yes"]) == ("0.10350", "0.1035")


def test_a_gap_is_never_a_half(stage: Stage) -> None:
    """A missing prediction is never 0.5: rows left out are declared, and not scored."""
    folder = stage("planned")
    lines = (PILOT / "predictions.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("007,ai_prophet,")]
    assert len(kept) == len(lines) - 1
    (folder / "a.csv").write_text("".join(kept), encoding="utf-8")
    must("predictions", "import", "a.csv", cwd=folder)
    assert ledger("close", cwd=folder).code == 2
    must("close", "--missing", "the run did not finish", cwd=folder)
    must("unseal", cwd=folder)
    scores = must("replay", "--json", cwd=folder).json
    assert scores["scores"]["wf_branch"]["n"] == 23
    assert scores["scores"]["ai_prophet"]["n"] == 23


def test_the_file_may_come_in_parts(stage: Stage, tmp_path: Path) -> None:
    folder = stage("planned")
    lines = (PILOT / "predictions.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (("a.csv", lines[1:90]), ("b.csv", lines[60:])):
        (tmp_path / name).write_text(lines[0] + "".join(part), encoding="utf-8")
        must("predictions", "import", tmp_path / name, cwd=folder)
    closed = json.loads(must("show", 194, "--json", cwd=folder).out) if _close(folder) else None
    assert closed is not None
    assert closed["payload"]["empty"] == []


def _close(folder: Path) -> bool:
    return "predictions closed" in must("close", cwd=folder).out
