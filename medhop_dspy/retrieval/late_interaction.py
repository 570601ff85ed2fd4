"""Late interaction (MaxSim) over the token vectors of the embedding model: a reranker without a model of its own."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medhop_dspy.errors import ArtefactError
from medhop_dspy.retrieval.embedding import single_threaded_pool
from medhop_dspy.retrieval.model_folder import check_model_folder
from medhop_dspy.retrieval.rerank import by_score, check_query, passage_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.trace import Passage

# About 140 kB a passage of 512 characters, so 140 MB when full. Half precision would save a half, but changed the
# order of 60 candidates for 13 of 120 questions.
CACHE_PASSAGES: Final = 1024
_SPARE_TOKENS: Final = 8


class LateInteractionReranker:
    """ColBERT's score on a plain sentence encoder, without training and without a further model file.

    The score of a passage is the mean over the query's tokens of the largest cosine similarity to any token of the
    passage (Khattab and Zaharia, 2020, divided by the number of query tokens): 1 for a passage that holds
    every query token in the same context. Texts longer than the encoder's input are read in windows, and the largest
    similarity is taken over all of them.

    Every text is encoded alone: in a batch its vectors would depend, in the last digits, on the texts beside it, and
    with a cache the order of near ties on what was asked before. On two CPU cores that costs a tenth to a fifth of
    the speed; but a passage that comes back in a later hop or repair is not encoded again.

    Safe for threads.
    """

    def __init__(
        self,
        folder: Path,
        *,
        with_title: bool = True,
        cache_passages: int = CACHE_PASSAGES,
        device: str | None = None,
    ) -> None:
        """Load the encoder.

        Args:
            folder: A sentence-transformers model. Only its transformer is used.
            with_title: Whether the encoder reads ``title: text`` instead of the text alone.
            cache_passages: Texts whose token vectors are kept, the least recently used leaving first.
            device: Such as ``cpu`` or ``cuda``; by default the fastest one present.

        Raises:
            ArtefactError: if a file of the model is missing, empty or unreadable.
        """
        check_model_folder(folder, hint=f"Fetch it with `medhop models fetch {folder.name}`.")
        self._encoder = _load(folder, device)
        # Threads of one PyTorch thread each, and an encoder for each: two texts at once are faster than one text on
        # two cores, and far faster beside other load. A fast tokenizer must not be used by two threads at once.
        self._pool = single_threaded_pool() if self._encoder.device.type == "cpu" else None
        self._own = threading.local()
        self._lock = threading.Lock()
        self._with_title = with_title
        self._vectors = lru_cache(maxsize=cache_passages)(self._encode)

    def rank(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """New records scored with the mean MaxSim, at most 1, descending, ties in the order given.

        Raises:
            InputError: if the query is blank.
        """
        if not passages:
            return []
        check_query(query)
        texts = [query, *(passage_text(p, with_title=self._with_title) for p in passages)]
        # All texts before all products: the thread pools of PyTorch and numpy get in each other's way.
        question, *vectors = self._pool.map(self._vectors, texts) if self._pool else map(self._vectors, texts)
        return by_score(passages, [_mean_max_sim(question, v) for v in vectors])

    def _encode(self, text: str) -> NDArray[np.float32]:
        """(n_tokens, d) unit vectors of the tokens of every window of ``text``."""
        with self._lock if self._pool is None else contextlib.nullcontext():
            encoder = self._encoder if self._pool is None else self._own_encoder()
            windows = self._windows(text, encoder)
            vectors = encoder.encode(windows, batch_size=1, convert_to_numpy=True, show_progress_bar=False)
        joined: NDArray[np.float32] = np.concatenate(vectors)
        return joined

    def _own_encoder(self) -> Any:  # noqa: ANN401  (MultiVectorEncoder, which is imported late)
        if not hasattr(self._own, "encoder"):
            with self._lock:
                self._own.encoder = copy.deepcopy(self._encoder)
        return self._own.encoder

    def _windows(self, text: str, encoder: Any) -> list[str]:  # noqa: ANN401
        """Pieces of ``text`` that fit the encoder, each sharing a quarter with the next."""
        # Some tokens are spared: cut out of its context, a piece may be tokenised a little longer.
        size = encoder.max_seq_length - _SPARE_TOKENS
        offsets = encoder.tokenizer(
            text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        if len(offsets) <= size:
            return [text]
        starts = range(0, len(offsets) - size // 4, size - size // 4)
        return [text[offsets[i][0] : offsets[min(i + size, len(offsets)) - 1][1]] for i in starts]


def _mean_max_sim(question: NDArray[np.float32], passage: NDArray[np.float32]) -> float:
    if not len(question) or not len(passage):  # text of which the tokenizer keeps nothing, such as U+200B
        return 0.0
    similarity = question @ passage.T  # (n_query_tokens, n_passage_tokens)
    return float(similarity.max(axis=1).mean(dtype=np.float64))


def _load(folder: Path, device: str | None) -> Any:  # noqa: ANN401  (its stubs want the modules' exact types)
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    with _no_progress_bar():
        try:
            transformer = Transformer.load(str(folder), local_files_only=True)
        except Exception as error:  # those of safetensors and tokenizers share no narrower base class
            raise ArtefactError(
                f"the encoder in {folder} cannot be loaded: {error}",
                hint="Delete the folder and fetch the model again.",
            ) from error
    # Given as modules: MultiVectorEncoder(folder) would add an untrained 384 -> 128 projection. The tokens around
    # every text do not count, because they match one another in any pair of texts.
    tokenizer = transformer.tokenizer
    around = {tokenizer.cls_token, tokenizer.sep_token, tokenizer.bos_token, tokenizer.eos_token} - {None}
    mask = MultiVectorMask(sorted(around), skiplist_tasks=["query", "document"])
    return MultiVectorEncoder(modules=[transformer, mask, Normalize("token_embeddings")], device=device)


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
