"""Every program by name: what the command line, the evaluation and saved files call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from medhop_dspy.errors import ProgramError

if TYPE_CHECKING:
    from medhop_dspy.knowledge.orphanet import Orphanet
    from medhop_dspy.pipelines.program import Program
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings


@dataclass(frozen=True)
class Entry:
    """One program: what it does, in a line for ``medhop programs``."""

    name: str
    description: str


PROGRAMS: Final = {
    e.name: e
    for e in (
        Entry("medhopper", "route, up to three hops, draft, checks, up to three repairs"),
        Entry("single_pass", "one search, one draft, no checks"),
    )
}


def build(name: str, retriever: Retriever, settings: Settings, orphanet: Orphanet | None = None) -> Program:
    """A new, uncompiled program.

    Raises:
        ProgramError: there is no program of that name.
    """
    from medhop_dspy.pipelines.medhopper import MedHopper
    from medhop_dspy.pipelines.single_pass import SinglePass

    match name:
        case "medhopper":
            return MedHopper(retriever, settings, orphanet)
        case "single_pass":
            return SinglePass(retriever, settings)
    raise ProgramError(f"unknown program {name!r}", hint=f"Choose one of {', '.join(PROGRAMS)}.")
