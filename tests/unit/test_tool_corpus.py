"""The local search tool: folders, FTS5 tables, ranking under a timebox, and bad corpora."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.ports import ToolAnswer, ToolRequest
from forecasting.tools.corpus import CorpusTool, match_expression, open_corpus
from ledger.errors import BadInputError

AS_OF = "2025-06-30T12:00:00.000000Z"
NOW = "2026-11-21T10:00:00.000000Z"


def write(folder: Path, *documents: dict[str, object], name: str = "docs.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(json.dumps(document) for document in documents))
    return folder


def doc(text: str, published: str | None = "2025-06-01", **fields: object) -> dict[str, object]:
    return {"title": "t", "text": text, "published": published, **fields}


def search(
    path: Path, query: str = "bridge", *, top: int = 8, table: str = "documents", **more: str
) -> ToolAnswer:
    async def run() -> ToolAnswer:
        tool = CorpusTool(open_corpus(path, table=table), timer=time.perf_counter, max_results=top)
        try:
            return await tool.search(ToolRequest({"query": query, **more}, AS_OF, NOW))
        finally:
            await tool.close()

    return asyncio.run(run())


def texts(answer: ToolAnswer) -> list[str]:
    assert answer.failure is None
    return [item.text for item in answer.found]


def test_every_form_of_document_is_read_in_order(tmp_path: Path) -> None:
    write(tmp_path, doc("bridge one"), doc("bridge two"), name="a.jsonl")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.json").write_text(json.dumps(doc("bridge three", url="https://e.org")))
    (tmp_path / "c.md").write_text("---\npublished: 2025-06-02\n---\nbridge four\n---\nfive\n")
    (tmp_path / "d.txt").write_text("---\ntitle: T\n---\nbridge six")
    (tmp_path / ".hidden").write_text("not a document")
    answer = search(tmp_path)
    found = {item.text: item for item in answer.found}
    assert set(found) == {
        "bridge one",
        "bridge two",
        "bridge three",
        "bridge four\n---\nfive",
        "bridge six",
    }
    assert found["bridge four\n---\nfive"].title == "c"
    assert found["bridge six"].published is None
    assert found["bridge three"].url == "https://e.org"
    assert answer.cost_usd == "0"


def test_later_documents_take_no_place_among_the_results(tmp_path: Path) -> None:
    late = [doc("bridge bridge bridge", "2025-07-01") for _ in range(20)]
    early = [doc(f"bridge number {index} and more words") for index in range(3)]
    answer = search(write(tmp_path, *late, *early), top=3)
    assert len(texts(answer)) == 3
    assert all("number" in text for text in texts(answer))
    assert answer.notices == ("20 better matches lie after as-of and were left out",)
    assert answer.limits_sent["not_after"] == AS_OF


def test_undated_documents_come_on_top_and_are_bounded(tmp_path: Path) -> None:
    undated = [doc("bridge bridge", None) for _ in range(5)]
    unreadable = [doc("bridge bridge", "someday") for _ in range(5)]
    dated = [doc("bridge and other words") for _ in range(5)]
    answer = search(write(tmp_path, *undated, *unreadable, *dated), top=2)
    assert [item.published is None for item in answer.found] == [True, True, False, False]


def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    folder = write(tmp_path, doc("bridge old", "2024-01-01"), doc("bridge new"))
    assert texts(search(folder, since="2025-01-01")) == ["bridge new"]


def test_the_digest_names_the_corpus(tmp_path: Path) -> None:
    one = open_corpus(write(tmp_path / "a", doc("x")))
    same = open_corpus(write(tmp_path / "b", doc("x"), name="other.jsonl"))
    other = open_corpus(write(tmp_path / "c", doc("y")))
    assert one.digest == same.digest != other.digest
    for corpus in (one, same, other):
        corpus.connection.close()


def make_database(path: Path, columns: str = "title, text, published") -> Path:
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE VIRTUAL TABLE news USING fts5({columns})")
    names = columns.split(", ")
    marks = ", ".join("?" for _ in names)
    row = ["bridge" if name != "published" else "2025-06-01" for name in names]
    connection.execute(f"INSERT INTO news VALUES ({marks})", row)
    connection.execute("CREATE TABLE plain (title, text)")
    connection.commit()
    connection.close()
    return path


def test_a_database_is_searched_and_left_as_it_was(tmp_path: Path) -> None:
    path = make_database(tmp_path / "news.db")
    before = path.read_bytes()
    answer = search(path, table="news")
    assert texts(answer) == ["bridge"]
    assert answer.found[0].published == "2025-06-01T00:00:00.000000Z"
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["news.db"]
    corpus = open_corpus(path, table="news")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        corpus.connection.execute("DELETE FROM news")
    corpus.connection.close()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("absent", "has no FTS5 table 'absent'"),
        ("plain", "has no FTS5 table 'plain'"),
        ('x" --', "is not a table name"),
        ("sqlite_master", "has no FTS5 table"),
    ],
)
def test_a_table_that_cannot_be_searched_is_refused(
    tmp_path: Path, table: str, message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        open_corpus(make_database(tmp_path / "news.db"), table=table)


def test_a_database_without_text_or_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="has no column 'text'"):
        open_corpus(make_database(tmp_path / "a.db", "title, published"), table="news")
    (tmp_path / "b.db").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(BadInputError, match=r"b\.db: is no corpus"):
        open_corpus(tmp_path / "b.db")
    with pytest.raises(BadInputError, match="no such corpus"):
        open_corpus(tmp_path / "c.db")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.jsonl", '{"title": "t"}', "x.jsonl:1: text is not text"),
        ("x.jsonl", '\n{"title": "t", "text": 7}', "x.jsonl:2: text is not text"),
        ("x.jsonl", "[]", "x.jsonl:1: is no document"),
        ("x.json", "{", "x.json: not JSON"),
        ("x.json", '{"title": "t", "text": "x", "date": "2025"}', "the field 'date' is not one"),
        ("x.json", '{"title": "t", "text": "x", "published": 2025}', "published is not text"),
        ("x.md", "no header", "x.md: has no header"),
        ("x.md", "---\n- a\n---\nb", "the header is no mapping"),
        ("x.md", "---\ntext: a\n---\nb", "holds the text"),
        ("x.csv", "a,b", "x.csv: does not belong to a corpus"),
        (".hidden", "x", "holds no document"),
    ],
)
def test_a_file_that_is_no_document_is_one_sentence(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInputError) as caught:
        open_corpus(tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_octets_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"\xff")
    with pytest.raises(BadInputError, match="cannot be read as UTF-8"):
        open_corpus(tmp_path)


@given(st.text(max_size=60))
def test_no_query_speaks_the_search_syntax(query: str) -> None:
    """FTS5's operators in a query are words, whatever a model writes."""
    try:
        expression = match_expression(query)
    except BadInputError:
        return
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE d USING fts5(t)")
    connection.execute("SELECT * FROM d WHERE d MATCH ?", (expression,)).fetchall()
    connection.close()


def test_a_query_without_a_word_is_refused(tmp_path: Path) -> None:
    answer = search(write(tmp_path, doc("x")), "--- *")
    assert answer.failure is not None
    assert answer.failure.kind == "bad_request"


def test_a_database_that_breaks_is_an_answer(tmp_path: Path) -> None:
    path = make_database(tmp_path / "news.db")
    tool = CorpusTool(open_corpus(path, table="news"), timer=time.perf_counter)

    async def run() -> ToolAnswer:
        await tool.close()
        return await tool.search(ToolRequest({"query": "bridge"}, AS_OF, NOW))

    answer = asyncio.run(run())
    assert answer.failure is not None
    assert answer.failure.kind == "server_error"
