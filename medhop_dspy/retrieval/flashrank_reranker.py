"""A FlashRank cross-encoder as a reranker that is offline, batched, and blind to nothing in a passage."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medhop_dspy.errors import ArtefactError, InputError, SettingsError
from medhop_dspy.retrieval.rerank import by_score, check_query, passage_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Encoding

    from medhop_dspy.trace import Passage

_SIDE_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_MIN_LENGTH: Final = 16


class FlashRankReranker:
    """Probability of relevance from a FlashRank model on the CPU.

    Only FlashRank's loading of model and tokenizer is used. Its ``rerank`` sorts and changes the caller's list, puts
    every passage in one batch padded to the longest, overflows on large logits, and reads the beginning of a
    passage only, so pairs are encoded, batched and scored here.

    A passage that does not fit is read in overlapping windows and gets the score of its best one. A query longer
    than half of the model's input is cut there, so that passages always keep the other half.

    Safe for threads. Nothing is ever downloaded.
    """

    def __init__(
        self,
        model_name: str,
        cache_dir: Path,
        *,
        max_length: int = 512,
        batch_size: int = 32,
        with_title: bool = False,
    ) -> None:
        """Load the model from ``cache_dir / model_name``.

        Args:
            model_name: A cross-encoder that FlashRank knows, such as ``ms-marco-MiniLM-L-12-v2``.
            cache_dir: Folder of unpacked FlashRank models.
            max_length: Tokens of one input at most, special tokens included, at least 16; the model's own limit
                holds where it is smaller.
            batch_size: Inputs of one run of the model at most, at least 1.
            with_title: Whether the model reads ``title: text`` instead of the text alone.

        Raises:
            SettingsError: if FlashRank has no cross-encoder of this name.
            InputError: if ``max_length`` or ``batch_size`` is too small.
            ArtefactError: if a file of the model is missing, empty or unreadable.
        """
        if max_length < _MIN_LENGTH or batch_size < 1:
            raise InputError(
                f"got max_length {max_length} and batch_size {batch_size}, wanted at least {_MIN_LENGTH} and 1"
            )
        ranker = _load(model_name, cache_dir, max_length)
        self._folder = cache_dir / model_name
        self._session = ranker.session
        self._inputs = frozenset(i.name for i in ranker.session.get_inputs())
        self._max_length: int = ranker.tokenizer.truncation["max_length"]
        self._pad_id: int = ranker.tokenizer.padding["pad_id"]
        # Our own encoding cuts and pads; a tokenizer that is never reconfigured again is safe for threads.
        self._tokenizer = ranker.tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._batch_size = batch_size
        self._with_title = with_title

    def rank(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """New records scored with the probability of relevance, 0 to 1, descending, ties in the order given.

        A model quantised with dynamic ranges lets the members of a batch touch one another's scores in the last
        digits; the same query and passages always give the same result.

        Raises:
            InputError: if the query is blank.
            ArtefactError: if the model's output is not one or two finite numbers per pair.
        """
        if not passages:
            return []
        check_query(query)
        question = self._encode(query)
        question.truncate(self._max_length // 2)
        owners: list[int] = []
        windows: list[Encoding] = []
        for i, passage in enumerate(passages):
            pairs = self._pairs(question, passage_text(passage, with_title=self._with_title))
            owners += [i] * len(pairs)
            windows += pairs
        best = np.full(len(passages), -np.inf)
        np.maximum.at(best, owners, self._margins(windows))
        return by_score(passages, _sigmoid(best).tolist())

    def _encode(self, text: str) -> Encoding:
        encoding: Encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding

    def _pairs(self, question: Encoding, text: str) -> list[Encoding]:
        """The query with each window of ``text``; a quarter of a window is shared with the next."""
        body = self._encode(text)
        room = self._max_length - len(question.ids) - self._tokenizer.num_special_tokens_to_add(True)
        body.truncate(room, stride=room // 4)
        return [self._tokenizer.post_process(question, window) for window in (body, *body.overflowing)]

    def _margins(self, windows: Sequence[Encoding]) -> NDArray[np.float64]:
        """(n,) log-odds of relevance, in batches of similar length."""
        order = sorted(range(len(windows)), key=lambda i: len(windows[i].ids))
        margins = np.empty(len(windows))
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            logits = self._session.run(None, self._feed([windows[i] for i in rows]))[0]
            margins[rows] = self._log_odds(np.asarray(logits, dtype=np.float64), len(rows))
        return margins

    def _feed(self, batch: Sequence[Encoding]) -> dict[str, NDArray[np.int64]]:
        shape = (len(batch), max(len(e.ids) for e in batch))
        ids = np.full(shape, self._pad_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        types = np.zeros(shape, dtype=np.int64)
        for row, encoding in enumerate(batch):
            n = len(encoding.ids)
            ids[row, :n], mask[row, :n], types[row, :n] = encoding.ids, encoding.attention_mask, encoding.type_ids
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return {name: array for name, array in feed.items() if name in self._inputs}

    def _log_odds(self, logits: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """One logit is the log-odds; of two, softmax gives the second class ``sigmoid(l1 - l0)``."""
        if logits.ndim != 2 or logits.shape[0] != n or logits.shape[1] not in (1, 2) or not np.isfinite(logits).all():
            raise ArtefactError(
                f"the model in {self._folder} returned logits of shape {logits.shape}, wanted ({n}, 1) or ({n}, 2), "
                "all finite",
                hint="Use a cross-encoder that FlashRank supports.",
            )
        return logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """``1 / (1 + exp(-x))`` without overflow at either end."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _load(model_name: str, cache_dir: Path, max_length: int) -> Any:  # noqa: ANN401  (flashrank has no types)
    from flashrank.Config import listwise_rankers, model_file_map

    known = sorted(set(model_file_map) - set(listwise_rankers))
    if model_name not in known:
        raise SettingsError(
            f"reranker_model is {model_name!r}, which FlashRank does not offer as a cross-encoder",
            hint=f"Choose one of {', '.join(known)}.",
        )
    folder = cache_dir / model_name
    _check_files(folder, (model_file_map[model_name], *_SIDE_FILES))
    from flashrank import Ranker

    with _root_logger_kept():
        try:
            return Ranker(model_name=model_name, cache_dir=str(cache_dir), max_length=max_length)
        except Exception as error:  # onnxruntime and tokenizers share no narrower base class
            raise ArtefactError(
                f"the FlashRank model in {folder} cannot be loaded: {error}",
                hint="Delete the folder and fetch the model again.",
            ) from error


def _check_files(folder: Path, names: Sequence[str]) -> None:
    """FlashRank downloads into a folder that is absent and trusts one that is there, whatever it holds."""
    for name in names:
        file = folder / name
        if not file.is_file() or file.stat().st_size == 0:
            state = "empty" if file.is_file() else "missing"
            raise ArtefactError(
                f"file {name} of the FlashRank model is {state} in folder {folder}",
                hint=f"Run `medhop models fetch {folder.name}`, unpack the model there yourself, or set "
                "reranker = late_interaction or none.",
            )


@contextlib.contextmanager
def _root_logger_kept() -> Iterator[None]:
    """``Ranker`` calls ``logging.basicConfig``, which does nothing while the root logger has a handler."""
    guard = logging.NullHandler()
    logging.root.addHandler(guard)
    try:
        yield
    finally:
        logging.root.removeHandler(guard)
