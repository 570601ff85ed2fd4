from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from medhop_dspy.retrieval.chunking import chunk_document, chunk_spans, chunk_text
from medhop_dspy.retrieval.corpus import Document

PLAIN = "abcdefghijklmnopqrstuvwxyz "


@pytest.mark.parametrize(
    ("length", "lengths"),
    [
        (0, []),
        (1, [1]),
        (512, [512]),
        (513, [512, 33]),
        (992, [512, 512]),
        (993, [512, 512, 33]),
        (1473, [512, 512, 512, 33]),
    ],
)
def test_window_lengths(length: int, lengths: list[int]) -> None:
    text = (PLAIN * 60)[:length]
    chunks = chunk_text(text)
    assert [len(chunk) for chunk in chunks] == lengths
    assert "".join(chunk if n == 0 else chunk[32:] for n, chunk in enumerate(chunks)) == text


def test_no_overlap_cuts_the_text_into_parts() -> None:
    assert chunk_text("abcdefgh", size=3, overlap=0) == ["abc", "def", "gh"]


@pytest.mark.parametrize("overlap", [512, 513, -1])
def test_overlap_must_be_below_size(overlap: int) -> None:
    with pytest.raises(ValueError, match=f"below size, got overlap={overlap} and size=512"):
        chunk_text("text", size=512, overlap=overlap)


@pytest.mark.parametrize("size", [0, -5])
def test_size_must_be_positive(size: int) -> None:
    with pytest.raises(ValueError, match=f"size={size}"):
        chunk_text("text", size=size, overlap=0)


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param("o\u0308", id="combining diaeresis"),
        pytest.param("e\u0323\u0302", id="two marks"),
        pytest.param("\u0915\u093f", id="Devanagari vowel sign"),
        pytest.param("\u2695\ufe0f", id="variation selector"),
        pytest.param("\U0001f469\u200d\u2695\ufe0f", id="joined emoji"),
        pytest.param("\U0001f44b\U0001f3fd", id="skin tone"),
        pytest.param("\u1112\u1161\u11ab", id="conjoining Hangul"),
    ],
)
@pytest.mark.parametrize("before", range(9))
def test_clusters_stay_whole(cluster: str, before: int) -> None:
    text = "a" * before + cluster + "b" * 12
    chunks = chunk_text(text, size=8, overlap=3)
    assert any(cluster in chunk for chunk in chunks)
    first_code_points = set(cluster[1:])
    assert not any(chunk[0] in first_code_points for chunk in chunks)
    assert all(len(chunk) <= 8 for chunk in chunks)


def test_a_cluster_longer_than_a_window_is_cut_in_linear_time() -> None:
    text = "o" + "\u0308" * 200_000
    started = time.perf_counter()
    chunks = chunk_text(text, size=512, overlap=32)
    assert time.perf_counter() - started < 10
    assert "".join(chunks) == text
    assert max(map(len, chunks)) == 512


CHARACTERS = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab \n.\u0308\u0301\u200d\ufe0f\U0001f3fd\u1161\u2028"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=120,
)


@given(CHARACTERS, st.integers(1, 20), st.data())
@example("o\u0308" * 9, 3, None)
@example("\u0308" * 30, 4, None)
def test_spans_cover_the_text_and_advance(text: str, size: int, data: st.DataObject | None) -> None:
    overlap = data.draw(st.integers(0, size - 1)) if data else size - 1
    spans = chunk_spans(text, size, overlap)
    assert [text[start:end] for start, end in spans] == chunk_text(text, size, overlap)

    rebuilt, covered = "", 0
    for start, end in spans:
        assert start <= covered < end, "no gap, and not wholly inside its predecessor"
        assert end - start <= size
        rebuilt += text[covered:end]
        covered = end
    assert rebuilt == text

    for start, end in spans:
        if start > 0 and unicodedata.combining(text[start]):
            # Only where the sequence before it would not fit into a window.
            base = max((i for i in range(start) if not unicodedata.category(text[i]).startswith("M")), default=0)
            following = next((i for i in range(start, len(text)) if not unicodedata.combining(text[i])), len(text))
            assert following - base > size or "\u200d" in text[max(0, start - size) : end + size]


@given(st.text(alphabet=PLAIN, max_size=300), st.integers(1, 40), st.data())
def test_plain_text_is_cut_by_arithmetic(text: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    starts = range(0, max(len(text) - overlap, 1), size - overlap) if text else []
    assert chunk_text(text, size, overlap) == [text[start : start + size] for start in starts]


def test_document_chunks_carry_its_fields() -> None:
    document = Document("d1", "FBN1", "https://example.org/FBN1", "abcdefgh", ("MFS1",))
    passages = chunk_document(document, size=5, overlap=1)
    assert [(p.id, p.text) for p in passages] == [("d1#0", "abcde"), ("d1#1", "efgh")]
    assert {(p.doc_id, p.title, p.url, p.score) for p in passages} == {("d1", "FBN1", "https://example.org/FBN1", 0.0)}


def test_white_space_chunks_are_dropped_without_a_gap_in_the_numbers() -> None:
    document = Document("d1", "t", "", "abcd" + " \n\t\u00a0" * 2 + "efgh")
    assert [(p.id, p.text) for p in chunk_document(document, size=4, overlap=0)] == [("d1#0", "abcd"), ("d1#1", "efgh")]
    assert chunk_document(Document("d2", "t", "", " \n "), size=4, overlap=0) == []
