"""Texts to unit vectors with a sentence-transformers model."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np

from medhop_dspy.errors import ArtefactError, InputError
from medhop_dspy.retrieval.model_folder import configuration_digest, locate_model, weights_digest

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from medhop_dspy.settings import Settings

_NORM_TOLERANCE: Final = 1e-3
_ACCELERATOR_BATCH: Final = 64
_NAME_BATCH: Final = 16


class Encoder(Protocol):
    """What an index needs of an embedding model. Two encoders that agree in ``digest``, ``revision`` and
    ``dimension`` give the same vectors.
    """  # noqa: D205

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def revision(self) -> str:
        """Identifies everything besides the weights that changes a vector, such as prompts and pooling."""
        ...

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the weights."""
        ...

    @property
    def dimension(self) -> int:
        """Length d of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) unit vectors of documents."""
        ...

    def embed_names(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) unit vectors of documents of a few words each, by whatever way is fast for many of them."""
        ...

    def truncated(self, texts: Sequence[str]) -> int:
        """How many documents are longer than the encoder reads."""
        ...


class Embedder:
    """A sentence-transformers model whose vectors depend on the text alone.

    On a CPU every text is encoded by itself on one thread, and several texts at once. In a batch the last digits of a
    vector depend on its neighbours, so that an interrupted build, or other query strings beside the same one, would
    give other vectors. Alone they are the same bit for bit, and sooner: with MiniLM on two busy cores 36
    chunks of 512 characters a second, against 22 in batches of 16 on two threads. (bfloat16 is ten times slower than
    float32 where the processor has no instructions for it, and dynamic int8 depends on the batch.) On an
    accelerator texts are batched, and vectors are the same to about 1e-6.

    Texts get the model's own ``document`` or ``query`` prompt, where it has one. Safe for threads.
    """

    def __init__(self, name: str, *, home: Path, device: str | None = None) -> None:
        """Check and load the model; the network is not used.

        Args:
            name: A path (absolute, or beginning with ``.`` or ``~``), the name of a folder in ``home/models``, or
                the id of a hub model that was downloaded before.
            home: The folder that holds ``models``.
            device: Such as ``cpu`` or ``cuda``; by default the fastest one present.

        Raises:
            ArtefactError: if the model is not there or not complete.
        """
        folder = locate_model(name, home)
        self._name = name if not name.startswith((".", "~", "/")) else folder.resolve().name
        self._digest = weights_digest(folder)
        self._revision = configuration_digest(folder)
        self._model = _load(folder, device)
        self._pool = single_threaded_pool() if self._model.device.type == "cpu" else None
        self._lock = threading.Lock()  # the tokenizer's truncation and padding are switched between uses

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """The embedder that ``settings.embedder`` names.

        Raises:
            ArtefactError: if it is not there or not complete.
        """
        return cls(settings.embedder, home=settings.home)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: optimisers copy the modules that hold it, and a model is to be shared."""
        return self

    @property
    def name(self) -> str:
        """The name it was asked for by; of a path, the last part."""
        return self._name

    @property
    def revision(self) -> str:
        """Hex SHA-256 of the model's configuration: prompts, pooling, tokenizer, lengths."""
        return self._revision

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the weight file."""
        return self._digest

    @property
    def dimension(self) -> int:
        """Length d of a vector."""
        return int(self._model.get_embedding_dimension())

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads, special ones included; the rest of a text is ignored."""
        return int(self._model.max_seq_length or self._model.tokenizer.model_max_length)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents.

        Returns:
            (n, d) finite rows of length 1, in the order of ``texts``; (0, d) for none.

        Raises:
            InputError: if ``texts`` is a string, or one of them is blank or no string.
            ArtefactError: if the model gives a vector that is not finite or has no direction.
        """
        return self._encode(texts, self._model.encode_document)

    def embed_names(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents of a few words, otherwise as :meth:`embed`.

        On a CPU, texts of the same number of tokens go in batches of a fixed size: nothing is padded, a vector does
        not depend on which texts are beside it, and it differs from that of :meth:`embed` by rounding alone (1e-7).
        With MiniLM on one busy core 350 names of the corpus take a second, against 55 by :meth:`embed`.
        """
        return self._encode(texts, self._model.encode_document, short=True)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, otherwise as :meth:`embed`. The same unless the model has a prompt for queries."""
        return self._encode(texts, self._model.encode_query)

    def truncated(self, texts: Sequence[str]) -> int:
        """How many of these documents have more tokens than the model reads.

        Raises:
            InputError: as :meth:`embed`.
        """
        checked = _checked(texts)
        if not checked:
            return 0
        with self._lock:
            return sum(count > self.max_tokens for count in self._token_counts(checked))

    def _token_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each document, special ones included; the caller has the lock."""
        prompt = (self._model.prompts or {}).get("document") or ""
        prompted = [prompt + text for text in texts]
        ids = self._model.tokenizer(prompted, truncation=False, padding=False, verbose=False)["input_ids"]
        return [len(tokens) for tokens in ids]

    def _batches(self, texts: Sequence[str]) -> list[list[int]]:
        """Numbers of the texts, in batches of equal token counts; the caller has the lock."""
        by_count: defaultdict[int, list[int]] = defaultdict(list)
        for number, count in enumerate(self._token_counts(texts)):
            by_count[min(count, self.max_tokens)].append(number)
        return [
            numbers[start : start + _NAME_BATCH]
            for _, numbers in sorted(by_count.items())
            for start in range(0, len(numbers), _NAME_BATCH)
        ]

    def _encode(self, texts: Sequence[str], encode: Any, *, short: bool = False) -> NDArray[np.float32]:  # noqa: ANN401
        checked = _checked(texts)
        if not checked:
            return np.zeros((0, self.dimension), np.float32)

        def encode_some(some: list[str]) -> NDArray[np.float32]:
            vectors = encode(some, batch_size=_ACCELERATOR_BATCH, normalize_embeddings=True, show_progress_bar=False)
            return np.asarray(vectors, np.float32)  # (n, d)

        with self._lock:
            if self._pool is None:
                vectors = encode_some(checked)
            else:
                batches = self._batches(checked) if short else [[number] for number in range(len(checked))]
                full = (_filled([checked[n] for n in batch], _NAME_BATCH if short else 1) for batch in batches)
                # The first alone: it switches the tokenizer, which must not happen while another thread uses it.
                found = [self._pool.submit(encode_some, next(full)).result(), *self._pool.map(encode_some, full)]
                vectors = np.empty((len(checked), self.dimension), np.float32)
                for batch, rows in zip(batches, found, strict=True):
                    vectors[batch] = rows[: len(batch)]
        good = np.abs(np.linalg.norm(vectors, axis=1) - 1) < _NORM_TOLERANCE  # false for NaN
        if not good.all():
            text = checked[int(np.argmin(good))]
            raise ArtefactError(
                f"embedding model {self._name} gave no unit vector for {text[:80]!r}",
                hint="The model's files are damaged; fetch it again.",
            )
        return vectors


def _checked(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError(f"got the string {texts[:80]!r} to embed, wanted a list of strings", hint="Wrap it: [text].")
    for i, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"text {i} to embed is {text!r}, wanted text that is not blank")
        if not text.isprintable() and any("\ud800" <= c <= "\udfff" for c in text):
            raise InputError(f"text {i} to embed holds half of a surrogate pair, which is no character: {text[:80]!r}")
    return list(texts)


def _filled(texts: list[str], size: int) -> list[str]:
    """``texts``, the first of them repeated up to ``size``: the last digits depend on the size of a batch."""
    return texts + texts[:1] * (size - len(texts))


def single_threaded_pool() -> ThreadPoolExecutor:
    """As many threads as PyTorch would use for one operation, each of which uses one; others keep what they have."""
    import torch

    def start() -> None:
        torch.get_num_threads()  # a thread's first use of PyTorch takes over the number set last, so that comes first
        torch.set_num_threads(1)

    count = torch.get_num_threads()
    pool = ThreadPoolExecutor(count, "embedding", initializer=start)
    everyone = threading.Barrier(count)
    for _ in pool.map(lambda _: everyone.wait(), range(count)):  # returns when every thread has started
        pass
    # What a thread sets holds for itself and for threads that start later, so it is set back for those.
    torch.set_num_threads(count)
    return pool


def _load(folder: Path, device: str | None) -> Any:  # noqa: ANN401  (its stubs want the modules' exact types)
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    bars: Any = logging  # its functions have no types
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        return SentenceTransformer(str(folder), device=device, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ArtefactError(
            f"the embedding model in {folder} cannot be loaded: {error}", hint="Delete the folder and fetch it again."
        ) from error
    finally:
        if shown:
            bars.enable_progress_bar()
