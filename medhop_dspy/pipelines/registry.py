"""Every program by name: what the command line, the evaluation and saved files call it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from medhop_dspy.errors import ProgramError

if TYPE_CHECKING:
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.knowledge.orphanet import Orphanet
    from medhop_dspy.pipelines.program import Program
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings


@dataclass(frozen=True)
class Entry:
    """One program: what it does, in a line for ``medhop programs``, and where its class is."""

    name: str
    description: str
    module: str
    class_name: str


PROGRAMS: Final = {
    e.name: e
    for e in (
        Entry("medhopper", "route, up to three hops, draft, checks, up to three repairs", "medhopper", "MedHopper"),
        Entry("hybrid_ir", "rounds of sub-questions over knowledge graph and vectors", "hybrid_ir", "HybridIR"),
        Entry("single_pass", "one search, one draft, no checks", "single_pass", "SinglePass"),
        Entry("zero_shot", "the model alone, without retrieval", "single_pass", "ZeroShot"),
        Entry("medcpt", "the one nearest passage, one draft", "single_pass", "MedCPT"),
        Entry("medrag", "BM25, dense and reranked order fused, one draft", "single_pass", "MedRAG"),
        Entry("hipporag", "PageRank over the knowledge graph, one draft", "single_pass", "HippoRAG"),
        Entry("gfm_rag", "graph neural network over the knowledge graph, one draft", "single_pass", "GFMRAG"),
        Entry("medgraphrag", "graph summaries down to passages, answer refined", "medgraphrag", "MedGraphRAG"),
        Entry("decomp_rag", "up to four sub-questions at once, then composition", "subquestions", "DecompRAG"),
        Entry("imedrag", "follow-up questions over rounds, then one answer", "subquestions", "IMedRAG"),
    )
}


def program_class(name: str) -> type[Program]:
    """The class of a program; :meth:`Program.adjusted` says which settings its retriever is to be opened with.

    Raises:
        ProgramError: there is no program of that name.
    """
    if name not in PROGRAMS:
        raise ProgramError(f"unknown program {name!r}", hint=f"Choose one of {', '.join(PROGRAMS)}.")
    entry = PROGRAMS[name]
    return cast("type[Program]", getattr(import_module(f"medhop_dspy.pipelines.{entry.module}"), entry.class_name))


def build(
    name: str, retriever: Retriever | GraphRetriever, settings: Settings, orphanet: Orphanet | None = None
) -> Program:
    """A new, uncompiled program; ``orphanet`` is for those that expand queries.

    Raises:
        ProgramError: there is no program of that name.
        SettingsError: the program searches a graph and ``retriever`` has none, or one with other settings.
    """
    from medhop_dspy.pipelines.medhopper import MedHopper

    made = program_class(name)
    return MedHopper(retriever, settings, orphanet) if made is MedHopper else made(retriever, settings)
