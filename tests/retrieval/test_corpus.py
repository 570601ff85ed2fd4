from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from medhop_dspy.errors import CorpusError
from medhop_dspy.retrieval.corpus import Document, ReadReport, read_corpus

A, B, C = ({"id": i, "title": f"T{i}", "url": f"u/{i}", "text": f"text {i}"} for i in "abc")


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(path: Path) -> tuple[list[Document], ReadReport]:
    report = ReadReport()
    return list(read_corpus(path, report)), report


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---------------------------------------------------------------- documents


def test_digest_covers_every_field_and_is_stable() -> None:
    document = Document("1", "Sjögren", "u", "te\u2028xt", ("a", "b"))
    canonical = '{"aliases": ["a", "b"], "id": "1", "text": "te\\u2028xt", "title": "Sj\\u00f6gren", "url": "u"}'
    assert document.digest == hashlib.sha256(canonical.encode()).hexdigest()
    others = [
        Document("2", "Sjögren", "u", "te\u2028xt", ("a", "b")),
        Document("1", "Sjogren", "u", "te\u2028xt", ("a", "b")),
        Document("1", "Sjögren", "v", "te\u2028xt", ("a", "b")),
        Document("1", "Sjögren", "u", "text", ("a", "b")),
        Document("1", "Sjögren", "u", "te\u2028xt", ("ab",)),
        Document("1", "Sjögrenu", "", "te\u2028xt", ("a", "b")),
    ]
    assert len({document.digest, *(other.digest for other in others)}) == 7


def test_a_document_needs_an_id() -> None:
    with pytest.raises(CorpusError, match="document 'T' has an empty id"):
        Document("", "T", "", "x")


# ---------------------------------------------------------------- JSON Lines (case 58)


@pytest.mark.parametrize(
    ("name", "pack"),
    [("c.jsonl", bytes), ("c.jsonl.gz", gzip.compress), ("c.jsonl.bz2", bz2.compress), ("C.JSONL", bytes)],
)
def test_json_lines(tmp_path: Path, name: str, pack: object) -> None:
    content = b"\xef\xbb\xbf" + lines(A) + b"\r\n" + lines(B | {"aliases": ["x", " x ", "", "Tb", "y"]}).rstrip()
    documents, report = read(written(tmp_path, name, pack(content)))
    assert documents == [Document(**A), Document(**B, aliases=("x", "y"))]
    assert report == ReadReport(documents=2)


def test_only_lf_ends_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\u000bd\u000ce\u001cf"
    raw = json.dumps({"id": 1, "title": "t", "text": "@"}).replace(
        "@", text.replace("\x0b", "\\u000b").replace("\x0c", "\\f").replace("\x1c", "\\u001c")
    )
    documents, _ = read(written(tmp_path, "c.jsonl", raw))
    assert [(d.id, d.text, d.url) for d in documents] == [("1", text, "")]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (b'{"id": "x", "te', "not JSON"),
        (b"[1, 2]", "a JSON list instead of an object"),
        (b'"text"', "a JSON str instead of an object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id": "x", "title": "t", "text": "\xff"}', "not UTF-8"),
        (b'{"id": "x", "title": "t", "text": "\\ud83d"}', "half of a surrogate pair"),
        (b'{"id": "x", "title": "t", "text": 1.5}', "field 'text' is of type float, not text"),
        (b'{"id": true, "title": "t", "text": "x"}', "field 'id' is of type bool"),
        (b'{"id": null, "title": "t", "text": "x"}', "the id is empty"),
        (b'{"id": " ", "title": "t", "text": "x"}', "the id is empty"),
        (b'{"id": "x", "title": "t", "text": "x", "aliases": "MFS"}', "field 'aliases' is of type str, not a list"),
        (b'{"id": "x", "title": "t", "sections": "x"}', "field 'sections' is not a list of objects"),
        (b'{"title": "t", "text": "x"}', "fields of no known layout: title, text"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_broken_line_is_reported_and_the_rest_is_read(tmp_path: Path, broken: bytes, reason: str) -> None:
    documents, report = read(written(tmp_path, "c.jsonl", lines(A) + broken + b"\n" + lines(C)))
    assert [d.id for d in documents] == ["a", "c"]
    assert [(p.source, p.number) for p in report.problems] == [("c.jsonl", 2)]
    assert reason in report.problems[0].reason


def test_a_broken_first_line_is_reported_too(tmp_path: Path) -> None:
    documents, report = read(written(tmp_path, "c.jsonl", b"{\n" + lines(B)))
    assert [d.id for d in documents] == ["b"]
    assert report.problems[0].number == 1


def test_records_without_text_are_counted(tmp_path: Path) -> None:
    documents, report = read(written(tmp_path, "c.jsonl", lines(A | {"text": " \n"}, B | {"text": None}, C)))
    assert [d.id for d in documents] == ["c"]
    assert (report.documents, report.empty, report.problems) == (1, 2, [])


def test_a_title_may_be_blank(tmp_path: Path) -> None:
    documents, _ = read(written(tmp_path, "c.jsonl", lines(A | {"title": " "})))
    assert documents[0].title == "a"


# ---------------------------------------------------------------- layouts


def test_medrag_layout(tmp_path: Path) -> None:
    record = {"id": "wiki-1_0", "title": "Aspirin", "content": "It is.", "contents": "Aspirin. It is."}
    documents, _ = read(written(tmp_path, "chunk.jsonl", lines(record)))
    assert documents == [Document("wiki-1_0", "Aspirin", "", "It is.")]


def test_medquad_layout(tmp_path: Path) -> None:
    sections = [
        {"question": "What is  X ?", "answer": "X is.\n                \nIt is   rare."},
        {"question": "Withheld ?", "answer": ""},
        {"question": "Null ?", "answer": None},
    ]
    record = {
        "id": "G1",
        "source": None,
        "url": "u",
        "title": "X",
        "synonyms": ["Y", "Z"],
        "cuis": [None],
        "sections": sections,
    }
    documents, report = read(
        written(tmp_path, "m.jsonl", lines(record, record | {"id": "G2", "synonyms": [], "sections": []}))
    )
    assert documents == [Document("G1", "X", "u", "Also called: Y; Z\nWhat is X ?\nX is.\nIt is rare.", ("Y", "Z"))]
    assert report.empty == 1


def test_textbook_layout(tmp_path: Path) -> None:
    names = [("", "Start."), ("Bones", "One."), ("Bones", "Two."), ("Empty", " "), ("Skin", "Three.")]
    record = {"id": "m1", "title": "Body ", "paragraphs": [{"section": s, "text": t} for s, t in names]}
    documents, _ = read(written(tmp_path, "t.jsonl", lines(record)))
    assert documents == [Document("m1", "Body", "", "Start.\nBones\nOne.\nTwo.\nSkin\nThree.")]


@pytest.mark.parametrize("pack", [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_json_objects_by_id(tmp_path: Path, pack: tuple) -> None:
    ending, packed = pack
    entries = {
        "Alû": ["It is a  spirit.", " It has\n no mouth.", "It roams."],
        "123": {"QUESTION": "Does it  work?", "CONTEXTS": ["Rats ran.", " ", "Cats sat."], "LONG_ANSWER": "It does."},
        "d": {"title": "T", "text": "x", "id": 9},
    }
    content = b"\xef\xbb\xbf" + json.dumps(entries, indent=1).encode()
    documents, report = read(written(tmp_path, f"c.json{ending}", packed(content)))
    assert documents == [
        Document("Alû", "Alû", "", "It is a spirit. It has no mouth. It roams."),
        Document("123", "Does it work?", "", "Rats ran.\nCats sat."),
        Document("d", "T", "", "x"),
    ]
    assert report == ReadReport(documents=3)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("text", "a JSON str instead of an object or a list of sentences"),
        ([True], "field 'sentences' is of type bool"),
        ({"QUESTION": "q", "CONTEXTS": "x"}, "field 'CONTEXTS' is of type str, not a list of texts"),
        ({"QUESTION": "q"}, "fields of no known layout: QUESTION, id"),
    ],
)
def test_a_broken_entry_is_reported_with_its_place(tmp_path: Path, entry: object, reason: str) -> None:
    documents, report = read(written(tmp_path, "c.json", json.dumps({"a": ["x"], "b": entry, "c": ["y"], "d": []})))
    assert [d.id for d in documents] == ["a", "c"]
    assert [(p.source, p.number) for p in report.problems] == [("c.json", 2)]
    assert reason in report.problems[0].reason
    assert report.empty == 1


def test_a_json_list_is_read_record_by_record(tmp_path: Path) -> None:
    documents, report = read(written(tmp_path, "c.json", json.dumps([A, 1, B])))
    assert [document.id for document in documents] == [A["id"], B["id"]]
    assert [(p.source, p.number) for p in report.problems] == [("c.json", 2)]


# ---------------------------------------------------------------- CSV (cases 73, 74, 76, 77)


@pytest.mark.parametrize("header", ["id,title,url,text", '"id","title","url","text"', " ID , Title,URL , text "])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv(tmp_path: Path, header: str, ending: str, mark: str) -> None:
    rows = [header, '1,"Which, gene?",u,"say ""x"""', "", '2,t,,"Line one\nline two"']
    documents, report = read(written(tmp_path, "c.csv", mark + ending.join(rows) + ending))
    assert documents == [Document("1", "Which, gene?", "u", 'say "x"'), Document("2", "t", "", "Line one\nline two")]
    assert report == ReadReport(documents=2)


def test_csv_values_stay_as_they_are(tmp_path: Path) -> None:
    rows = "id,title,text\n007,t,NA\n008,t,None\n009,t,1e5\n010,null,nan\n011,t,\n"
    documents, report = read(written(tmp_path, "c.csv", rows))
    assert [(d.id, d.title, d.text) for d in documents] == [
        ("007", "t", "NA"),
        ("008", "t", "None"),
        ("009", "t", "1e5"),
        ("010", "null", "nan"),
    ]
    assert report.empty == 1


def test_csv_reads_fields_longer_than_the_csv_modules_limit(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)
    documents, _ = read(written(tmp_path, "c.csv", f"id,title,text\n1,t,{'x' * 300_000}\n"))
    assert len(documents[0].text) == 300_000


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2,t,x,more", "4 fields where the header has 3"),
        ("2,t", "2 fields where the header has 3"),
        ('2,"t"u,x', "not CSV"),
    ],
)
def test_a_broken_row_is_reported_with_the_line_it_begins_on(tmp_path: Path, row: str, reason: str) -> None:
    documents, report = read(written(tmp_path, "c.csv", f'id,title,text\n1,t,"two\nlines"\n{row}\n3,t,z\n'))
    assert [d.id for d in documents] == ["1", "3"]
    assert [(p.source, p.number) for p in report.problems] == [("c.csv", 4)]
    assert reason in report.problems[0].reason


def test_a_quote_that_never_ends_is_reported(tmp_path: Path) -> None:
    documents, report = read(written(tmp_path, "c.csv", 'id,title,text\n1,t,x\n2,t,"y\n3,t,z\n'))
    assert [d.id for d in documents] == ["1"]
    assert report.problems == [("c.csv", 3, "not CSV: unexpected end of data")]


# ---------------------------------------------------------------- text files and folders


def test_folder(tmp_path: Path) -> None:
    written(tmp_path, "b/marfan_syndrome.txt", "\ufeffLong fingers.\r\n")
    written(tmp_path, "a.md", "# Heading\n")
    written(tmp_path, "b/c.jsonl", lines(A))
    written(tmp_path, "B/empty.txt", "\n")
    written(tmp_path, "b/latin.txt", "Beh\xe7et".encode("latin-1"))
    for name in ("LICENSE.txt", "b/README.md", "x.pdf", "notes.txt.gz"):
        written(tmp_path, name, "x")
    for name in (".hidden.txt", "__MACOSX/a.txt", ".git/a.txt", "b/._c.jsonl"):
        written(tmp_path, name, "x")
    documents, report = read(tmp_path)
    assert [(d.id, d.title, d.text.strip()) for d in documents] == [
        ("a.md", "a", "# Heading"),
        ("a", "Ta", "text a"),
        ("b/marfan_syndrome.txt", "marfan syndrome", "Long fingers."),
    ]
    assert report.empty == 1
    assert [(p.source, p.number) for p in report.problems] == [("b/latin.txt", 0)]
    assert "not UTF-8" in report.problems[0].reason
    assert report.skipped == ["LICENSE.txt", "b/README.md", "notes.txt.gz", "x.pdf"]


def test_a_single_text_file(tmp_path: Path) -> None:
    documents, _ = read(written(tmp_path, "deep/FBN1.txt", "On 15q21.1."))
    assert documents == [Document("FBN1.txt", "FBN1", "", "On 15q21.1.")]


def test_documents_come_one_by_one(tmp_path: Path) -> None:
    path = written(tmp_path, "c.jsonl", lines(A, B) + b"{")
    report = ReadReport()
    documents = read_corpus(path, report)
    assert next(documents).id == "a"
    assert (report.documents, report.problems) == (1, [])
    assert [d.id for d in documents] == ["b"]
    assert (report.documents, len(report.problems)) == (2, 1)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("name", ["absent", "x.pdf", "folder", "LICENSE.txt"])
def test_nothing_to_read_is_an_error_before_reading(tmp_path: Path, name: str) -> None:
    for other in ("x.pdf", "folder/x.pdf", "LICENSE.txt"):
        written(tmp_path, other, "x")
    with pytest.raises(CorpusError, match=r"no such file or folder|no file of a kind that is read") as error:
        read_corpus(tmp_path / name, ReadReport())
    assert error.value.hint


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.jsonl", b"", r"no document in .*: 0 records without text, 0 problems$"),
        (
            "c.jsonl",
            b"{\n[]\n",
            r"no document in .*: 0 records without text, 2 problems, the first in c\.jsonl: not JSON",
        ),
        ("c.jsonl", lines(A | {"text": ""}), "no document in .*: 1 records without text"),
        ("c.csv", b"id,title,text\n", "no document in"),
        ("c.txt", b" \n", "1 records without text"),
        ("c.csv", b"id,text\n1,x\n", r"c\.csv line 2: fields of no known layout: id, text"),
        ("c.csv", b'id,"title"x,text\n1,x,y\n', "c.csv line 1: not CSV"),
        ("c.csv", b"", "no document in"),
        ("c.csv", b"id,title,text,Title\n1,x,y,z\n", "two columns have the same name"),
        ("c.jsonl", lines({"title": "t", "text": "x"}, A), r"c\.jsonl line 1: fields of no known layout: title, text"),
        ("c.jsonl", lines(A, B, A), "document id 'a' occurs twice: c.jsonl line 1 and c.jsonl line 3"),
        ("c.jsonl", lines(A | {"id": 5}, A | {"id": "5"}), "document id '5' occurs twice"),
        ("c.csv", b"id,title,text\n1,t,\xff\n", "c.csv is not UTF-8"),
        ("c.json", b"[1]", r"1 problems, the first in c\.json: a JSON int instead of an object"),
        ("c.json", b'{"a": ["x"]', r"the first in c\.json: not JSON"),
        ("c.json", b'{"a": ["x"], "a": ["y"]}', r"the first in c\.json: not JSON: the name 'a' occurs twice"),
        ("c.json", b"\xff", r"the first in c\.json: not UTF-8"),
        ("c.json", b'{"a": {"text": "x"}}', r"c\.json item 1: fields of no known layout: text, id"),
        ("c.jsonl.gz", b"no gzip", "cannot read .*c.jsonl.gz"),
        ("c.jsonl.gz", gzip.compress(lines(A, B))[:-12], "cannot read .*c.jsonl.gz"),
        ("c.jsonl.bz2", bz2.compress(lines(A, B))[:-12], "cannot read .*c.jsonl.bz2"),
        ("c.jsonl.gz", gzip.compress(lines(A))[:10] + b"\xff" * 30, "cannot read .*c.jsonl.gz"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read(written(tmp_path, name, content))


def test_an_id_that_occurs_in_two_files_names_both(tmp_path: Path) -> None:
    written(tmp_path, "a.jsonl", lines(A))
    written(tmp_path, "b/c.csv", "id,title,text\nx,t,x\na,t,y\n")
    with pytest.raises(CorpusError, match=r"'a' occurs twice: a\.jsonl line 1 and b/c\.csv line 3") as error:
        read(tmp_path)
    assert "id of its own" in error.value.hint


def test_an_unknown_layout_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as error:
        read(written(tmp_path, "c.csv", "identifier,title,text\n1,t,x\n"))
    assert "id, text, title (plain)" in error.value.hint
    assert "content, id, title (MedRAG)" in error.value.hint


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "c.jsonl", lines(A))
    documents = read_corpus(path, ReadReport())
    path.unlink()
    with pytest.raises(CorpusError, match=r"cannot read .*c\.jsonl: .*No such file"):
        next(documents)


# ---------------------------------------------------------------- real corpora


def test_medquad(shared: Path) -> None:
    documents, report = read(shared / "medquad")
    assert (report.documents, report.problems, report.skipped) == (5322, [], ["LICENSE.txt"])
    marfan = next(d for d in documents if d.title == "Marfan syndrome" and d.id.startswith("GHR"))
    assert "FBN1" in marfan.text
    assert marfan.url == "https://ghr.nlm.nih.gov/condition/marfan-syndrome"


def test_textbook(shared: Path) -> None:
    documents, report = read(shared / "textbooks")
    assert (len(documents), report.problems, report.empty) == (198, [], 0)
    assert len({d.digest for d in documents}) == 198


def test_hotpotqa(shared: Path) -> None:
    documents, report = read(shared / "hotpotqa" / "hotpotqa_train_corpus.json")
    assert report == ReadReport(documents=994)
    assert (documents[0].id, documents[0].title) == ("Demon Dice", "Demon Dice")
    assert "(designer of the better-known Dragon Dice) and Tim Brown. In it, each player" in documents[0].text


def test_pubmedqa(shared: Path) -> None:
    documents, report = read(shared / "pubmedqa")
    assert report == ReadReport(documents=1000)
    first = documents[0]
    assert first.id == "21645374"
    assert first.title.startswith("Do mitochondria play a role in remodelling lace plant leaves")
    assert first.text.startswith("Programmed cell death (PCD) is the regulated death")
    assert "Results depicted mitochondrial dynamics" not in first.text  # the long answer
