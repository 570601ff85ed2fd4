"""Different samples of one prompt: what optimisers ask for when they call a model at a temperature above zero."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import Request, Response


class _Reseeded:
    """An engine that gives every repetition of a sampled prompt the next seed; greedy requests pass unchanged.

    With the one seed of the settings, ten proposals for an instruction would be ten times the same.
    """

    def __init__(self, engine: Any) -> None:  # noqa: ANN401  (DSPy's engines share no class)
        self._engine = engine
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        """The inner engine's reply."""
        return self._engine.complete(self._reseeded(request))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._engine, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Reseeded:
        return self

    def _reseeded(self, request: Request) -> Request:
        config = request.config
        if not config.temperature:
            return request
        prompt = hashlib.sha256(repr((request.system, request.messages, config)).encode()).hexdigest()
        with self._lock:
            number = self._seen[prompt]
            self._seen[prompt] += 1
        return replace(request, config=replace(config, seed=(config.seed or 0) + number))


def sampling(lm: dspy.BaseLM) -> dspy.BaseLM:
    """A twin of ``lm`` whose repeated samples differ, the same way in every run that asks in the same order.

    A model without an engine of its own is returned as it is.
    """
    engine = getattr(lm, "engine", None)
    if not hasattr(engine, "complete"):
        return lm
    return lm.copy(engine=_Reseeded(engine))
