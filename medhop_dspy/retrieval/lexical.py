"""BM25 over the passages of an index, with tokens that keep biomedical symbols whole."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medhop_dspy.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.trace import Passage

_GREEK_NAMES: Final = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon "
    "phi chi psi omega"
)
_GREEK: Final = dict(zip(range(ord("α"), ord("ω") + 1), _GREEK_NAMES.split(), strict=True))
_DASHES: Final = str.maketrans(dict.fromkeys("‐‑‒–—−", "-") | {"’": "'"})

# A translocation such as t(9;22), or letters and digits joined by single marks: il-2, hla-b*57:01, sjogren's.
# A dot or comma joins digits only, so that a missing space after a full stop glues no words together.
_TOKEN: Final = re.compile(r"[a-z]+\(\w+(?:;\w+)+\)(?:\(\w+(?:[.;]\w+)*\))?|\w+(?:(?:[-*:'_]|(?<=\d)[.,](?=\d))\w+)*")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MIN_PART: Final = 3


def tokenize(text: str) -> list[str]:
    """Lower-case tokens in the order of the text, without stemming and without stop words.

    Symbols stay whole: ``IL-2``, ``11p15.5``, ``HLA-B*57:01``, ``t(9;22)``. A hyphenated token is followed by its
    closed-up spelling, so that ``IL-2`` meets ``IL2``, and by its parts that are words of three letters or more.
    Greek letters become names, so that ``TNF-α`` meets ``TNF-alpha``; accents, a possessive ``'s`` and the commas of
    ``1,500`` are dropped.

    There is no stop-word list because ``a``, ``no`` and ``it`` are also vitamins, gases and abbreviations; BM25
    gives words that are everywhere next to no weight.
    """
    folded = unicodedata.normalize("NFKD", text).casefold()
    folded = "".join(c for c in folded if not unicodedata.combining(c))
    folded = _THOUSANDS.sub("", folded.translate(_GREEK).translate(_DASHES))
    tokens: list[str] = []
    for match in _TOKEN.finditer(folded):
        whole = match.group().removesuffix("'s")
        tokens.append(whole)
        if "-" in whole and any(c.isalpha() for c in whole):
            tokens.append(whole.replace("-", ""))
            tokens.extend(part for part in whole.split("-") if len(part) >= _MIN_PART and part.isalpha())
    return tokens


class LexicalIndex:
    """BM25 (Lucene's variant, k1 = 1.5, b = 0.75) over passages, in memory.

    The same passages in the same order give the same results in every process. Safe for threads: nothing
    changes after construction.
    """

    def __init__(self, passages: Iterable[Passage], *, with_title: bool = True) -> None:
        """Tokenise and index every passage.

        Args:
            passages: In any stable order; kept in memory.
            with_title: Whether the words of a title count as words of its passages.
        """
        self._passages = tuple(passages)
        texts = (f"{p.title} {p.text}" if with_title else p.text for p in self._passages)
        self._vocabulary: dict[str, int] = {}
        # Our own numbering by first occurrence: bm25s numbers a set of strings, in another order in each process.
        ids = [[self._vocabulary.setdefault(t, len(self._vocabulary)) for t in tokenize(text)] for text in texts]
        self._model = _build(ids, self._vocabulary) if self._vocabulary else None
        self._ids = np.array([p.id for p in self._passages], dtype=object)

    def __len__(self) -> int:
        return len(self._passages)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The passages that share at least one token with each query.

        Returns:
            For each query, in order, at most ``k`` new records with their BM25 score, by descending score, then
            id. A query without any known token gets an empty list.

        Raises:
            InputError: if ``k`` is below 1.
        """
        if k < 1:
            raise InputError(f"k must be at least 1, got {k}")
        return [self._search_one(query, k) for query in queries]

    def _search_one(self, query: str, k: int) -> list[Passage]:
        known = [self._vocabulary[t] for t in tokenize(query) if t in self._vocabulary]
        if self._model is None or not known:
            return []
        scores: NDArray[np.float32] = self._model.get_scores_from_ids(known)  # (n_passages,)
        order = self._best(scores, k)
        return [replace(self._passages[i], score=float(scores[i])) for i in order]

    def _best(self, scores: NDArray[np.float32], k: int) -> list[int]:
        """Numbers of the ``k`` best positive scores, with every tie at the cut broken by id."""
        hits = np.flatnonzero(scores > 0)
        if len(hits) > k:
            cut = np.partition(scores[hits], -k)[-k]
            hits = hits[scores[hits] >= cut]
        return sorted(hits.tolist(), key=lambda i: (-scores[i], self._ids[i]))[:k]


def _build(ids: list[list[int]], vocabulary: dict[str, int]) -> Any:  # noqa: ANN401  (bm25s has no types)
    import bm25s

    # bm25s sets its logger to DEBUG at import, which lets its messages past the root logger's level.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    model = bm25s.BM25()
    model.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    return model
