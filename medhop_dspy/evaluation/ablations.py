"""The configurations of an ablation as data: what each changes in the program as it is set up, and why one looks.

A configuration is relative to the settings it is applied to, which are those of ``full``. The paper's fourteen are
:data:`PAPER`, in its order; :data:`EXTRA` are ours; :data:`FACTORIAL` are all sixteen combinations of four checks;
:data:`HYBRID_IR` are the parts of Hybrid-IR and its rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from medhop_dspy.errors import InputError
from medhop_dspy.settings import PLACES, PRESETS, Settings

FULL: Final = "full"

# The checks of the factorial: their names here, and the settings that switch them.
VALIDATORS: Final = {
    "generic": "use_generic_filter",
    "kind": "use_type_check",
    "grounding": "use_grounding_check",
    "self_reference": "use_self_reference_check",
}

# All configurations share one model server, one index and one graph, and presets are MedHopper's: what one says of
# these, and of the rounds of other programs, stays as it was given.
_SHARED: Final = PLACES | {
    *("retriever", "graph_scorer", "damping", "top_entities", "link_floor", "rounds", "sub_questions", "stop_early"),
    *("preset", "backend", "lm_model", "context_tokens", "slots", "temperature", "seed"),
    *("chunk_size", "chunk_overlap", "embedder", "embed_title"),
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One row of an ablation.

    Attributes:
        name: Unique, and fit for a folder.
        meaning: In a line, for people.
        overrides: Fields of :class:`~medhop_dspy.settings.Settings` and their values.
        program: A name of :data:`medhop_dspy.pipelines.registry.PROGRAMS`.
        needs_tables: Whether it changes nothing where no rare-disease tables are set.
    """

    name: str
    meaning: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    program: str = "medhopper"
    needs_tables: bool = False

    def apply(self, settings: Settings) -> Settings:
        """``settings`` with the overrides, validated again.

        Where ``evidence`` changes, what is bound to it follows unless it is overridden too: the pool is never smaller,
        a first search brings all of it, and a hop reads as many passages as a draft where it did before, and otherwise
        no more than a draft.

        Raises:
            SettingsError: an override is no setting, or out of bounds.
        """
        values = dict(self.overrides)
        if "evidence" in values:
            evidence = values["evidence"]
            as_many = settings.hop_evidence == settings.evidence
            values.setdefault("hop_evidence", evidence if as_many else min(settings.hop_evidence, evidence))
            values.setdefault("first_evidence", None)
            values.setdefault("pool", max(settings.pool, evidence))
        return settings.replace(**values)


def _capped(terms: int, queries: int, rerank: int) -> dict[str, int]:
    """Caps in the proportions of the paper's: of 10 terms, 5 become query strings and 3 join the rerank query.

    Its cap alone, with these two as they are, changes nothing that the model reads.
    """
    return {"expansion_terms": terms, "expansion_queries": queries, "expansion_rerank": rerank}


PAPER: Final = (
    Configuration(FULL, "the program as it is set up"),
    Configuration("single_pass", "one search, one draft, no checks", program="single_pass"),
    Configuration("repair_off", "no repair after a failed check", {"use_repair": False}),
    Configuration("no_generic_filter", "category words may be answers", {"use_generic_filter": False}),
    Configuration("no_kind_validation", "answers of any type", {"use_type_check": False}),
    Configuration("no_grounding_validation", "answers need not be in the evidence", {"use_grounding_check": False}),
    Configuration("no_self_reference", "answers may repeat the question", {"use_self_reference_check": False}),
    Configuration(
        "orpha_expansion_off", "no rare-disease names and genes", {"use_expansion": False}, needs_tables=True
    ),
    Configuration("orpha_expansion_cap5", "5 terms, 2 of them query strings", _capped(5, 2, 1), needs_tables=True),
    Configuration("orpha_expansion_cap20", "20 terms, 10 of them query strings", _capped(20, 10, 6), needs_tables=True),
    Configuration(
        "orpha_gene_hints_off", "no gene candidates in gene hops", {"use_gene_hints": False}, needs_tables=True
    ),
    Configuration("rerank_topn_10", "10 passages of evidence", {"evidence": 10}),
    Configuration("rerank_topn_30", "30 passages of evidence", {"evidence": 30}),
    Configuration("rerank_off", "evidence in the order of the search", {"reranker": "none"}),
)


def _preset(name: str) -> Configuration:
    values = Settings(**{**PRESETS[name], "preset": name})
    overrides = {field: getattr(values, field) for field in Settings.model_fields if field not in _SHARED}
    return Configuration(f"preset_{name}", f"preset {name}, with the same model, index and graph", overrides)


EXTRA: Final = (
    Configuration("answer_draft", "the last draft instead of no answer", {"unvalidated": "draft"}),
    Configuration("hnsw", "approximate instead of exact search", {"index_search": "hnsw"}),
    Configuration("readings_off", "one free draft from all passages", {"readings": 0}),
    Configuration("lexical", "BM25 fused with dense search", {"lexical": True}),
    *map(_preset, PRESETS),
)


def checks_name(on: Iterable[str]) -> str:
    """Name of the configuration with these of :data:`VALIDATORS` on and the others off.

    >>> checks_name(["kind", "generic"]), checks_name([])
    ('checks-generic-kind', 'checks-none')
    """
    chosen = set(on)
    return "-".join(["checks", *([v for v in VALIDATORS if v in chosen] or ["none"])])


def _checks(switches: tuple[bool, ...]) -> Configuration:
    on = [name for name, switch in zip(VALIDATORS, switches, strict=True) if switch]
    overrides = dict(zip(VALIDATORS.values(), switches, strict=True))
    return Configuration(checks_name(on), f"of the four checks: {', '.join(on) or 'none'}", overrides)


FACTORIAL: Final = tuple(map(_checks, product((True, False), repeat=len(VALIDATORS))))


_RETRIEVERS: Final = {"hybrid": "graph and vectors", "graph": "the graph alone", "dense": "vectors alone"}
_MOST_ROUNDS: Final = 5
HYBRID_FULL: Final = "hybrid_ir_hybrid_T3"

# Hybrid-IR's ablations: either way of retrieval alone, and T = 1 to 5 rounds, of which 1 is no iteration at all.
HYBRID_IR: Final = tuple(
    Configuration(
        f"hybrid_ir_{retriever}_T{rounds}",
        f"Hybrid-IR over {meaning}, T = {rounds}",
        {"retriever": retriever, "rounds": rounds},
        program="hybrid_ir",
    )
    for retriever, meaning in _RETRIEVERS.items()
    for rounds in range(1, _MOST_ROUNDS + 1)
)

CONFIGURATIONS: Final = {each.name: each for each in (*PAPER, *EXTRA, *FACTORIAL, *HYBRID_IR)}
GROUPS: Final = {
    "paper": PAPER,
    "factorial": FACTORIAL,
    "hybrid_ir": HYBRID_IR,
    "all": tuple(CONFIGURATIONS.values()),
}


def choose(names: Iterable[str]) -> list[Configuration]:
    """The configurations of these names and :data:`GROUPS`, each once.

    The first is what all are compared with: ``full``, or Hybrid-IR with all its parts and the paper's T = 3 where only
    Hybrid-IR is asked for.

    Raises:
        InputError: there is no name, or an unknown one.
    """
    chosen: dict[str, Configuration] = {}
    for name in names:
        if name not in GROUPS and name not in CONFIGURATIONS:
            raise InputError(
                f"unknown configuration {name!r}",
                hint=f"Choose of {', '.join(GROUPS)}, {', '.join(each.name for each in (*PAPER, *EXTRA))}.",
            )
        chosen |= {each.name: each for each in GROUPS.get(name) or (CONFIGURATIONS[name],)}
    if not chosen:
        raise InputError("no configuration is named", hint=f"Choose of {', '.join(GROUPS)}.")
    only_hybrid = all(each.program == "hybrid_ir" for each in chosen.values())
    first = CONFIGURATIONS[HYBRID_FULL if only_hybrid else FULL]
    return list(({first.name: first} | chosen).values())
