import json
import logging
import os
import subprocess
import sys

import pytest

from medhop_dspy.errors import InputError
from medhop_dspy.retrieval.lexical import LexicalIndex, tokenize
from medhop_dspy.trace import Passage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" -, . ()", []),
        ("The FBN1 gene.", ["the", "fbn1", "gene"]),
        ("IL-2", ["il-2", "il2"]),
        ("5-HT1A", ["5-ht1a", "5ht1a"]),
        ("11p15.5", ["11p15.5"]),
        ("1.5 hours", ["1.5", "hours"]),
        ("1,500 and 2,500,000", ["1500", "and", "2500000"]),
        ("1,25-dihydroxyvitamin", ["1,25-dihydroxyvitamin", "1,25dihydroxyvitamin", "dihydroxyvitamin"]),
        ("10-15", ["10-15"]),
        ("HLA-B*57:01", ["hla-b*57:01", "hlab*57:01", "hla"]),
        ("t(9;22)", ["t(9;22)"]),
        ("t(9;22)(q34;q11.2)", ["t(9;22)(q34;q11.2)"]),
        ("gene(s)", ["gene", "s"]),
        ("c.1521_1523del", ["c", "1521_1523del"]),
        ("TNF-α", ["tnf-alpha", "tnfalpha", "tnf", "alpha"]),
        ("TNF-alpha", ["tnf-alpha", "tnfalpha", "tnf", "alpha"]),
        ("non\u2013small-cell", ["non-small-cell", "nonsmallcell", "non", "small", "cell"]),
        ("Sjögren's Sjo\u0308gren\u2019s SJÖGREN", ["sjogren", "sjogren", "sjogren"]),
        ("end.Next", ["end", "next"]),
        ("vitamin A, NO", ["vitamin", "a", "no"]),
        ("ﬁbrillin", ["fibrillin"]),
        ("線粒体", ["線粒体"]),
    ],
)
def test_tokenize(text, expected):
    assert tokenize(text) == expected


def passages(*texts: str, title: str = "") -> list[Passage]:
    return [Passage(f"p{i}", f"p{i}", title, "", text) for i, text in enumerate(texts)]


def found(index: LexicalIndex, query: str, k: int = 10) -> list[str]:
    return [p.text for p in index.search([query], k)[0]]


CORPUS = passages(
    "IL-2 drives T cells.",
    "IL-6 drives fever.",
    "The receptor of interleukin 2 is a trimer.",
    "TNF-alpha drives fever and fever again.",
    "Beckwith-Wiedemann syndrome maps to 11p15.5.",
    "Another band is 11p15.",
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("IL-2", "IL-2 drives T cells."),
        ("IL2", "IL-2 drives T cells."),
        ("il-6", "IL-6 drives fever."),
        ("TNF-α", "TNF-alpha drives fever and fever again."),
        ("TNFα", "TNF-alpha drives fever and fever again."),
        ("11p15.5", "Beckwith-Wiedemann syndrome maps to 11p15.5."),
        ("11p15", "Another band is 11p15."),
        ("Wiedemann", "Beckwith-Wiedemann syndrome maps to 11p15.5."),
    ],
)
def test_symbols_find_their_passage(query, first):
    assert found(LexicalIndex(CORPUS), query)[0] == first


def test_only_passages_that_share_a_token():
    index = LexicalIndex(CORPUS)
    assert found(index, "IL-6") == ["IL-6 drives fever."]
    assert found(index, "zebrafish") == []
    assert found(index, "?!") == []


def test_scores_are_bm25():
    """Lucene: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b len / mean length))."""
    from math import log

    ranked = LexicalIndex(passages("a a b", "a", "c c c c c")).search(["a"], 5)[0]
    idf = log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    norm = {n: 1.5 * (1 - 0.75 + 0.75 * n / 3) for n in (1, 3)}
    expected = {"a a b": idf * 2 / (2 + norm[3]), "a": idf / (1 + norm[1])}
    assert {p.text: p.score for p in ranked} == pytest.approx(expected, rel=1e-5)
    assert all(type(p.score) is float for p in ranked)


def test_ties_go_to_the_smaller_id_also_at_the_cut():
    twins = [Passage(f"p{i}", "d", "", "", "fever") for i in (3, 1, 2, 0)]
    index = LexicalIndex([*twins, *passages("other")])
    assert [p.id for p in index.search(["fever"], 2)[0]] == ["p0", "p1"]


def test_several_queries_and_more_than_there_are():
    results = LexicalIndex(CORPUS).search(["drives", "", "trimer"], 100)
    assert [len(r) for r in results] == [3, 0, 1]


@pytest.mark.parametrize("texts", [(), ("", "...")], ids=["no passages", "no tokens"])
def test_empty_index(texts):
    index = LexicalIndex(passages(*texts))
    assert len(index) == len(texts)
    assert index.search(["gene", ""], 5) == [[], []]


def test_title_counts_as_text_unless_told_otherwise():
    given = passages("It is rare.", title="Marfan syndrome")
    assert found(LexicalIndex(given), "marfan") == ["It is rare."]
    assert found(LexicalIndex(given, with_title=False), "marfan") == []


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one(k):
    with pytest.raises(InputError, match=f"at least 1, got {k}"):
        LexicalIndex(CORPUS).search(["gene"], k)


def test_library_log_level_is_quiet():
    LexicalIndex(CORPUS)
    assert logging.getLogger("bm25s").getEffectiveLevel() >= logging.WARNING


def test_same_scores_in_every_process():
    program = (
        "import json; from medhop_dspy.retrieval.lexical import LexicalIndex; from medhop_dspy.trace import Passage;"
        "ps = [Passage(f'p{i}', 'd', '', '', ' '.join(f'w{i * j % 17}' for j in range(1, 9))) for i in range(40)];"
        "print(json.dumps([[p.id, p.score] for p in LexicalIndex(ps).search(['w3 w5 w7 w11 w3'], 20)[0]]))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    assert len(json.loads(runs.pop())) == 20
