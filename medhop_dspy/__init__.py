"""Local, deterministic, multi-hop biomedical question answering as compiled DSPy programs.

Public names are looked up when they are first used: importing the package loads no model, client or library.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    "EvidenceFirstAdapter": "medhop_dspy.adapter",
    "GraphIndex": "medhop_dspy.graph.index",
    "GraphRetriever": "medhop_dspy.graph.retriever",
    "HybridIR": "medhop_dspy.pipelines.hybrid_ir",
    "MedHopper": "medhop_dspy.pipelines.medhopper",
    "MedhopError": "medhop_dspy.errors",
    "Passage": "medhop_dspy.trace",
    "Settings": "medhop_dspy.settings",
    "SinglePass": "medhop_dspy.pipelines.single_pass",
    "Trace": "medhop_dspy.trace",
    "connect": "medhop_dspy.lm.connect",
    "load": "medhop_dspy.runtime",
    "model_server": "medhop_dspy.lm.serve",
    "open_retriever": "medhop_dspy.runtime",
    "session": "medhop_dspy.runtime",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
