"""Open information extraction by a language model, and the extraction of a whole corpus by any extractor.

Two steps, as in HippoRAG and GFM-RAG: first the entities of a passage, then triples that use them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.errors import ContextOverflowError, InputError, MedhopError, ReplyError, ServerError
from medhop_dspy.graph.cache import passage_key
from medhop_dspy.graph.records import Extraction
from medhop_dspy.graph.triples import clean
from medhop_dspy.threads import in_threads

if TYPE_CHECKING:
    import dspy

    from medhop_dspy.graph.cache import ExtractionCache
    from medhop_dspy.graph.records import Extractor, Source
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage

_log = logging.getLogger(__name__)

MAX_FAILED: Final = 0.2  # share of the passages
_FIRST: Final = 5  # passages in a row that may fail at the beginning
_RULES: Final = 4  # raise it where what is kept of a reply changes (triples, names): cached extractions are stale


class ModelExtractor:
    """Asks a language model for the entities of a passage, and if there are any for triples: two calls at most.

    Both prompts begin with the passage, so that a server with a prefix cache reads it once. Safe for threads.
    """

    source: Source = "model"

    def __init__(self, lm: dspy.BaseLM, model: str, adapter: dspy.Adapter | None = None) -> None:
        """Extract with ``lm``.

        Args:
            lm: Where the calls go.
            model: What replies, in full: its name, weights and sampling; other replies need another text.
            adapter: Default: :class:`~medhop_dspy.adapter.EvidenceFirstAdapter`.
        """
        import dspy

        from medhop_dspy.adapter import EvidenceFirstAdapter
        from medhop_dspy.graph.signatures import ENTITY_TOKENS, TRIPLE_TOKENS, NamedEntities, Triples

        self.entities = dspy.Predict(NamedEntities, max_tokens=ENTITY_TOKENS)
        self.triples = dspy.Predict(Triples, max_tokens=TRIPLE_TOKENS)
        self._lm = lm
        self._adapter = adapter or EvidenceFirstAdapter()
        self._model = model

    @classmethod
    def connect(cls, settings: Settings) -> ModelExtractor:
        """With the model server at ``settings.base_url``.

        Raises:
            ServerUnavailableError: the server does not answer.
            ServerError: it serves another model than ``lm_model``.
        """
        from medhop_dspy.lm.connect import PROBE_TIMEOUT, connect, probe

        key = settings.api_key.get_secret_value() if settings.api_key else None
        server = probe(settings.base_url, key, min(settings.timeout, PROBE_TIMEOUT), model=settings.lm_model)
        sampling = {"temperature": settings.temperature, "seed": settings.seed}
        return cls(connect(settings, server), json.dumps([server.model, server.fingerprint, sampling]))

    @property
    def digest(self) -> str:
        """Hex SHA-256 of model, prompts, what holds the replies to their form, and the rules by which they are read."""
        from medhop_dspy.replies import reply_options

        example = {"evidence": ["passage"], "entities": ["entity"]}
        prompts = [
            [self._adapter.format(each.signature, each.demos, example), reply_options(each.signature), each.config]
            for each in (self.entities, self.triples)
        ]
        state = [_RULES, self._model, prompts]
        return hashlib.sha256(json.dumps(state, sort_keys=True, default=str).encode()).hexdigest()

    def extract(self, passage: Passage) -> Extraction:
        """Entities and triples of ``passage``.

        Raises:
            ReplyError: a reply is empty, cut or not of the form.
            ContextOverflowError: the passage does not fit the model's context.
            ServerUnavailableError: the server is down.
            ServerError: it refuses, or does not reply with text.
        """
        import dspy

        text = f"{passage.title}: {passage.text}" if passage.title else passage.text
        with dspy.context(lm=self._lm, adapter=self._adapter):
            named = _asked(self.entities, evidence=[text]).entities
            found = clean(named, [], self.source, text)
            if not found.entities:
                return found
            names = [entity.name for entity in found.entities]
            said = _asked(self.triples, evidence=[text], entities=names).triples
            return clean(named, said, self.source, text)


def _asked(predictor: dspy.Predict, **inputs: Any) -> dspy.Prediction:  # noqa: ANN401
    from dspy.utils.exceptions import AdapterParseError, LMError

    from medhop_dspy.lm.failures import parse_reason

    try:
        return predictor(**inputs)
    except MedhopError:
        raise
    except AdapterParseError as error:
        raise ReplyError(parse_reason(error)) from error
    except (TypeError, AttributeError, KeyError, LMError) as error:  # how a reply that is no text shows in DSPy
        raise ServerError(
            f"the language model did not reply with text: {type(error).__name__}: {error}",
            hint="Check that lm_url is the address of an OpenAI-compatible model server.",
        ) from error


def extract_all(
    passages: Sequence[Passage],
    extractor: Extractor,
    cache: ExtractionCache,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Extraction]:
    """What each passage says, out of ``cache`` or newly extracted and then kept there.

    Killed at any moment and called again, it extracts only what is missing or has failed. Passages of the same title
    and text are extracted once. Where an error ends it, what is under way still ends and is kept.

    Args:
        passages: With ids that are unique.
        extractor: Asked for every passage that the cache does not know.
        cache: Open, of this extractor's digest; every extraction is added as it comes.
        workers: Passages extracted at once.
        progress: Called in this thread with the passages done or failed and all passages, first with those that the
            cache knows.

    Returns:
        Extractions by passage id, in the order of the passages; a passage that failed is missing.

    Raises:
        InputError: ``workers`` is below 1.
        ReplyError: more than 20 % of all passages failed, or the first five that were tried.
        ServerError: the server is down or refused a request, as it would all others.
        StoreError, DiskFullError: the cache cannot be written.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")
    digest, keys = extractor.digest, [passage_key(passage) for passage in passages]
    # Of passages with one title and text the first stands for all.
    missing = {k: p for k, p in zip(reversed(keys), reversed(passages), strict=True) if cache.get(k) is None}
    todo = list(reversed(missing.items()))
    share = _Share(len(passages))
    known = len(passages) - len(todo)
    progress(known, len(passages))
    outcomes = in_threads(
        lambda task: _extracted(extractor, digest, cache, *task), todo, workers, lambda: share.end is not None
    )
    for done, (passage, error) in enumerate(outcomes, start=known + 1):
        share.count(passage, error)
        if share.end is None:
            progress(done, len(passages))
    share.close()
    found = ((passage.id, cache.get(key)) for passage, key in zip(passages, keys, strict=True))
    return {id_: extraction for id_, extraction in found if extraction is not None}


def _extracted(
    extractor: Extractor, digest: str, cache: ExtractionCache, key: str, passage: Passage
) -> tuple[Passage, MedhopError | None]:
    """Extract a passage and keep what it says at once, whoever still waits for it; or the error."""
    try:
        extraction = extractor.extract(passage)
    except MedhopError as error:
        return passage, error
    cache.add(key, digest, extraction)
    return passage, None


class _Share:
    """Counts failures, and tells when they must end the extraction.

    Attributes:
        end: The error that ends it, once there is one.
    """

    def __init__(self, passages: int) -> None:
        self.end: MedhopError | None = None
        self._passages = passages
        self._tried = 0
        self._failed = 0
        self._first = ""

    def count(self, passage: Passage, error: MedhopError | None) -> None:
        if self.end is not None:
            return
        self._tried += 1
        if error is None:
            return
        if not isinstance(error, ReplyError | ContextOverflowError):  # it does not concern this passage alone
            self.end = error
            return
        self._failed += 1
        self._first = self._first or f"{passage.id}: {error}"
        hopeless = self._failed == self._tried == _FIRST
        if hopeless or self._failed > MAX_FAILED * self._passages:
            self.end = ReplyError(
                f"extraction failed for {self._failed} of {self._tried} passages tried, at most {MAX_FAILED:.0%} of "
                f"{self._passages} may; the first is {self._first}",
                hint="Use a larger model, or the dictionary extractor; passages that succeeded are kept.",
            )
            self.end.__cause__ = error

    def close(self) -> None:
        """Raise the error, if there is one, or warn of failures."""
        if self.end is not None:
            raise self.end
        if self._failed:
            _log.warning(
                "extraction failed for %d of %d passages and is tried again by the next run; the first is %s",
                self._failed,
                self._passages,
                self._first,
            )
