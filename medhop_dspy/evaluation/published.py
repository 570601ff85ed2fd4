"""Results that others have published, to be shown beside ours and never mixed with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HIDDEN_TEST: Final = "MedHopQA hidden test, 1,000 questions"
MMLU: Final = "MMLU-Med"
NO_PROGRAM: Final = "not in this package"


@dataclass(frozen=True, slots=True)
class Published:
    """One published number.

    Attributes:
        system: Name, and the language model where it is known.
        measure: What the number is.
        value: As published.
        data: The questions that it was measured on.
        program: The program of ours whose share of right answers may stand beside it, on open questions or, in
            :data:`CHOICE`, on the set named by ``data``; empty where none may, and where there is none.
    """

    system: str
    measure: str
    value: str
    data: str
    program: str = ""


SYSTEMS: Final = (
    Published("MedHopper, Qwen2.5-7B", "exact match", "0.55", HIDDEN_TEST, "medhopper"),
    Published("DecompRAG", "exact match", "0.43", HIDDEN_TEST, "decomp_rag"),
    Published("organisers' zero-shot baseline", "exact match", "0.602", HIDDEN_TEST, "zero_shot"),
    Published("best of 13 teams", "exact match", "0.873", HIDDEN_TEST),
)

# Computed from the published answers of the 14 configurations, normalised as in `answers.normalise`. The two figures
# together say that the published differences are not those of the ablated parts.
AGREEMENT: Final = (
    Published("MedHopper: full and each of 13 ablations", "same answers", "54.4 % to 60.5 %", HIDDEN_TEST),
    Published("MedHopper: cap 5, cap 20 and no gene hints", "same answers, each pair", "100 %", HIDDEN_TEST),
)

_ACCURACY: Final = "accuracy, %"
_MEAN: Final = "mean of the three"
CHOICE: Final = (
    Published("Hybrid-IR, Llama-3-8B", _ACCURACY, "72.2", "MedQA", "hybrid_ir"),
    Published("Hybrid-IR, Llama-3-8B", _ACCURACY, "59.8", "MedMCQA", "hybrid_ir"),
    Published("Hybrid-IR, Llama-3-8B", _ACCURACY, "75.8", MMLU, "hybrid_ir"),
    Published("Hybrid-IR, Llama-3-8B", _ACCURACY, "69.3", _MEAN),
    Published("i-MedRAG, best baseline", _ACCURACY, "67.2", _MEAN),
)
