import copy
import json
import threading
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from medhop_dspy.errors import InputError
from medhop_dspy.retrieval.embedding import Embedder
from medhop_dspy.retrieval.index import Index
from medhop_dspy.retrieval.lexical import tokenize
from medhop_dspy.retrieval.rerank import NoReranker, by_score, make_reranker
from medhop_dspy.retrieval.retriever import Retriever, merge
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage


class HashedWords:
    """Unit vectors of counted words, each word at the place that its checksum gives; keeps what it was asked for."""

    def __init__(self):
        self.calls: list[list[str]] = []

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in enumerate(texts):
            for token in tokenize(text):
                vectors[row, zlib.crc32(token.encode()) % 512] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


class ExactIndex:
    """Brute-force search; keeps the size of every search."""

    def __init__(self, passages: Sequence[Passage], embedder: HashedWords):
        self._embedder = embedder
        self._passages: dict[str, Passage] = {}
        self._rows: dict[str, np.ndarray] = {}
        self.searches: list[tuple[int, int]] = []
        self.listed = 0
        self.add(passages)

    def add(self, passages: Sequence[Passage]) -> None:
        self._passages |= {p.id: p for p in passages}
        self._rows |= zip((p.id for p in passages), self._embedder.embed([p.text for p in passages]), strict=True)
        self.digest = str(len(self._passages))

    def search(self, vectors: np.ndarray, k: int) -> list[list[Passage]]:
        self.searches.append((len(vectors), k))
        return [self._search_one(v, k) for v in vectors]

    def _search_one(self, vector: np.ndarray, k: int) -> list[Passage]:
        scored = [replace(p, score=float(self._rows[p.id] @ vector)) for p in self._passages.values()]
        return sorted(scored, key=lambda p: (-p.score, p.id))[:k]

    def all_passages(self) -> Iterator[Passage]:
        self.listed += 1
        return iter(self._passages.values())

    def passages(self, doc_id: str) -> list[Passage]:
        return [p for p in self._passages.values() if p.doc_id == doc_id]

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        return np.array([self._rows[i] for i in ids])


class SharedWords:
    """Orders by the number of the query's words in a passage; keeps the queries and the sizes of the pools."""

    def __init__(self):
        self.calls: list[tuple[str, int]] = []

    def rank(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        self.calls.append((query, len(passages)))
        words = set(tokenize(query))
        return by_score(passages, [len(words & set(tokenize(p.text))) for p in passages])


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"p{i:03}", f"d{i}", "", "", text) for i, text in enumerate(texts)]


CORPUS = passages(
    *(f"fever case {i}" for i in range(20)),
    *(f"rash case {i}" for i in range(20, 40)),
    "the FBN1 gene lies on chromosome 15",
    "chromosome 7 holds the CFTR gene",
)


@pytest.fixture
def make():
    def build(given=CORPUS, reranker=None, **overrides):
        embedder = HashedWords()
        index = ExactIndex(given, embedder)
        values = {"candidates": 10, "pool": 12, "evidence": 1, "hop_evidence": 1, "reranker": "none"} | overrides
        settings = Settings(**values)
        return Retriever(index, embedder, reranker or NoReranker(), settings)

    return build


def ids(found: list[Passage]) -> list[str]:
    return [p.id for p in found]


def test_one_embedding_call_and_one_search_for_all_strings(make):
    retriever = make()
    retriever.search([" fever ", "rash\n case", "", "fever", "  ", "rash case"], 3)
    assert retriever._embedder.calls == [["fever", "rash case"]]
    assert retriever.index.searches == [(2, 10)]


@pytest.mark.parametrize("queries", [[], [""], [" ", "\n\t", "\u2003"]], ids=["none", "empty", "blank"])
def test_no_query_left(make, queries):
    with pytest.raises(InputError, match=f"none of the {len(queries)} query strings"):
        make().search(queries, 3)


def test_one_string_instead_of_a_list(make):
    with pytest.raises(InputError, match="the one string 'fever'"):
        make().search("fever", 3)


@pytest.mark.parametrize("k", [0, -5])
def test_k_below_one(make, k):
    with pytest.raises(InputError, match=f"k must be at least 1, got {k}"):
        make().search(["fever"], k)


@pytest.mark.parametrize(
    ("given", "k", "expected"),
    [
        pytest.param(CORPUS[:3], 20, 3, id="k over what there is"),
        pytest.param([], 5, 0, id="empty index"),
        pytest.param(CORPUS, 1, 1, id="one"),
        pytest.param(CORPUS, 500, 12, id="k over the pool"),
    ],
)
@pytest.mark.parametrize(
    "mode", [{}, {"search": "mmr"}, {"lexical": True}, {"search": "mmr", "lexical": True}], ids=str
)
def test_as_many_as_there_are(make, given, k, expected, mode):
    found = make(given, **mode).search(["fever", "rash"], k)
    assert len(found) == len(set(ids(found))) == expected
    assert all(isinstance(p, Passage) for p in found)


def test_a_full_pool_holds_every_strings_best(make):
    strings = ["fever case", "fever", "case fever 3", "FBN1 gene chromosome 15", "rash"]
    pool = ids(make(pool=5).search(strings, 5))
    assert "p040" in pool
    assert "p020" in pool


def test_pool_is_reranked_and_cut(make):
    reranker = SharedWords()
    retriever = make(reranker=reranker)
    found = retriever.search(["fever", "chromosome gene"], 2, rerank_query="CFTR gene chromosome")
    assert ids(found) == ["p041", "p040"]
    assert [p.score for p in found] == [3.0, 2.0]
    assert reranker.calls == [("CFTR gene chromosome", 12)]


@pytest.mark.parametrize("given", [None, "", "  "], ids=["not given", "empty", "blank"])
def test_first_query_reranks_by_default(make, given):
    reranker = SharedWords()
    make(reranker=reranker).search(["", "fever", "rash"], 2, rerank_query=given)
    assert [query for query, _ in reranker.calls] == ["fever"]


def test_near_duplicates_leave_room_for_others(make):
    start = "Fever is a rise of the body temperature that " * 4  # over 160 characters
    twins = [
        start + "ends here.",
        start.upper() + "differs in the end.",
        start.replace(" ", "\n ") + "or in its white space.",
    ]
    found = make(passages(*twins, "fever of another kind"), pool=2).search(["fever temperature"], 5)
    assert len(found) == 2
    assert found[1].id == "p003"


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        pytest.param(["a" * 160 + "x", "a" * 160 + "y"], ["p000"], id="same 160 characters"),
        pytest.param(["a" * 159 + "x", "a" * 159 + "y"], ["p000", "p001"], id="160th differs"),
        pytest.param(["Fever  is\nrare", "fever is rare"], ["p000"], id="case and white space"),
        pytest.param(["STRASSE", "straße"], ["p000"], id="case folding"),
        pytest.param(["fever", "fever is rare"], ["p000", "p001"], id="only a beginning"),
    ],
)
def test_what_counts_as_a_duplicate(texts, kept):
    assert ids(merge([passages(*texts)], 10)) == kept


@pytest.mark.parametrize(
    ("rankings", "limit", "merged"),
    [
        pytest.param(["abc"], 2, "ab", id="one ranking"),
        pytest.param(["abc", "xyz"], 4, "axby", id="rank by rank"),
        pytest.param(["a", "xyz"], 9, "axyz", id="unequal lengths"),
        pytest.param(["abc", "bax"], 9, "abcx", id="best rank counts"),
        pytest.param(["", ""], 9, "", id="nothing"),
    ],
)
def test_merge(rankings, limit, merged):
    given = [[Passage(i, i, "", "", f"text {i}") for i in ranking] for ranking in rankings]
    assert "".join(ids(merge(given, limit))) == merged


def test_mmr_picks_from_its_own_fetch_size_and_spreads(make):
    given = passages("fever", "fever fever", "fever and rash", "cough")
    near = make(given, candidates=2)
    spread = make(given, candidates=2, search="mmr", mmr_fetch=3, mmr_lambda=0.3)
    assert ids(near.search(["fever"], 2)) == ["p000", "p001"]
    assert ids(spread.search(["fever"], 2)) == ["p000", "p002"]
    assert spread.index.searches == [(1, 3)]


def test_mmr_fetch_bounds_the_candidates(make):
    assert len(make(search="mmr", mmr_fetch=4).search(["fever"], 10)) == 4


def test_lexical_finds_what_dense_search_does_not(make):
    given = passages(
        *(f"gene {'gene ' * i}" for i in range(1, 9)),
        "a long text on many things, one of them GENE XYZ-1 " + "other words " * 30,
    )
    dense = make(given, candidates=3, pool=5)
    both = make(given, candidates=3, pool=5, lexical=True)
    assert "p008" not in ids(dense.search(["gene XYZ1"], 5))
    assert "p008" in ids(both.search(["gene XYZ1"], 5))


def test_weights_decide_between_the_two(make):
    given = passages("alpha alpha beta", "beta", "gamma alpha")
    dense, words = (make(given).fused(dense=1 - w, lexical=w).search(["alpha"], 3) for w in (0.1, 0.9))
    assert ids(dense)[:2] == ids(make(given).search(["alpha"], 3))[:2]
    assert {*ids(words)[:2]} == {"p000", "p002"}
    alike = make(given).fused(dense=1, lexical=1).search(["alpha"], 3)
    assert ids(alike) == ids(make(given, lexical=True).search(["alpha"], 3))


def test_passages_are_ordered_by_cosine(make):
    given = passages("fever", "rash", "fever and rash", "fever")
    found = make(given).by_cosine("fever", [given[n] for n in (1, 3, 2, 0)])
    assert ids(found) == ["p000", "p003", "p002", "p001"]
    assert [p.score for p in found] == [1, 1, pytest.approx(3**-0.5, abs=1e-6), 0]
    assert make(given).by_cosine("fever", []) == []


def test_passages_with_the_fitting_sentence_come_first(make):
    given = passages(
        "The rash is red. The rash may itch.",
        "CFTR lies elsewhere. Many words follow on other things. The FBN1 gene lies on chromosome 15.",
        "FBN1 is a gene.",
    )
    reranker = SharedWords()
    found = make(given, reranker).by_best_sentence("FBN1 gene on chromosome 15", given)
    assert found == [given[1], given[2], given[0]]  # as they were given: text, score and all
    assert reranker.calls == [("FBN1 gene on chromosome 15", 6)]


def test_without_a_reranker_passages_keep_their_order(make):
    given = passages("The rash is red. It itches.", "FBN1 lies there.", "\n")
    assert make(given).by_best_sentence("FBN1", given) == given
    assert make(given).by_best_sentence("FBN1", []) == []


def test_equal_sentences_keep_the_order_of_their_passages(make):
    given = passages("FBN1 lies there. Rash.", "Rash. FBN1 lies there.", "FBN1 lies there.")
    assert make(given, SharedWords()).by_best_sentence("FBN1", given) == given


def test_lexical_index_is_built_once_and_only_when_needed(make):
    without, with_it = make(), make(lexical=True)
    without.search(["fever"], 1)
    assert without.index.listed == 0
    barrier = threading.Barrier(4)

    def search(_):
        barrier.wait(timeout=30)
        return with_it.search(["fever"], 5)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(search, range(4)))
    assert with_it.index.listed == 1
    assert all(r == results[0] for r in results)


def test_lexical_index_follows_the_passages(make):
    retriever = make().fused(dense=0, lexical=1)
    assert "new" not in ids(retriever.search(["zebrafish"], 12))
    retriever.index.add([Passage("new", "new", "", "", "a zebrafish")])
    assert ids(retriever.search(["zebrafish"], 1)) == ["new"]


def test_same_call_same_order(make):
    strings = ["fever case", "rash case", "gene"]
    first = make(lexical=True).search(strings, 12)
    assert make(lexical=True).search(strings, 12) == first


def test_deep_copies_are_the_same_object(make):
    retriever = make()
    assert copy.deepcopy({"retriever": retriever})["retriever"] is retriever


@pytest.fixture(scope="module")
def models():
    settings = Settings()
    if not (settings.home / "models" / "all-MiniLM-L6-v2" / "model.safetensors").is_file():
        pytest.skip(f"no embedding model in {settings.home / 'models'}")
    return Embedder.from_settings(settings), make_reranker(settings)


@pytest.mark.parametrize("overrides", [{}, {"search": "mmr"}, {"lexical": True}], ids=str)
def test_with_a_real_index_and_model(models, tmp_path, overrides):
    embedder, reranker = models
    settings = Settings(candidates=3, mmr_fetch=3, pool=4, evidence=1, hop_evidence=1, **overrides)
    facts = {
        "FBN1": "FBN1 encodes fibrillin-1 and lies on chromosome 15q21.1.",
        "CFTR": "CFTR encodes a chloride channel and lies on chromosome 7.",
        "Marfan syndrome": "Mutations of the FBN1 gene cause Marfan syndrome.",
        "Mitral valve": "The mitral valve lies between left atrium and left ventricle.",
    }
    corpus = tmp_path / "corpus.jsonl"
    lines = (json.dumps({"id": name, "title": name, "text": text}) for name, text in facts.items())
    corpus.write_text("\n".join(lines))
    index, _ = Index.build(str(tmp_path / "index"), corpus, embedder, settings)
    with index:
        retriever = Retriever(index, embedder, reranker, settings)
        strings = ["Which gene is mutated in Marfan syndrome?", "chromosome of FBN1"]
        found = retriever.search(strings, 4, rerank_query="On which chromosome is FBN1?")
        assert found[0].id == "FBN1#0"
        assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
        assert retriever.search(strings, 4, rerank_query="On which chromosome is FBN1?") == found


ARTICLE = [
    Passage("a#0", "a", "A", "", "first part about bones"),
    Passage("a#1", "a", "A", "", "zebrafish fins"),
    Passage("a#2", "a", "A", "", "third part about nerves"),
    Passage("a#3", "a", "A", "", "last part about skin"),
    Passage("b#0", "b", "B", "", "zebrafish and more zebrafish elsewhere"),
]


@pytest.mark.parametrize(
    ("neighbours_of", "k", "expected"),
    [
        (0, 2, ["a#1", "b#0"]),
        (1, 4, ["a#0", "a#1", "a#2", "b#0"]),
        (1, 1, ["a#1"]),
        (1, 2, ["a#0", "a#1"]),
        (2, 4, ["a#0", "a#1", "a#2", "b#0"]),
        (2, 5, ["a#0", "a#1", "a#2", "b#0"]),
    ],
)
def test_the_best_passages_come_with_the_text_around_them(make, neighbours_of, k, expected):
    found = make(ARTICLE, SharedWords(), neighbours_of=neighbours_of, pool=2).search(["zebrafish fins"], k)
    assert ids(found) == expected


def test_neighbours_have_the_score_of_their_passage(make):
    found = make(ARTICLE, SharedWords(), neighbours_of=1).search(["zebrafish fins"], 3)
    assert {p.score for p in found} == {2.0}
