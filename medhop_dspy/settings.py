"""One frozen settings object, and the named presets as data.

Where a value comes from, strongest first: arguments of :meth:`Settings.load`, ``MEDHOP_*`` environment
variables, a TOML file, the preset, the default below.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any, Final, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from medhop_dspy.errors import SettingsError

ENV_PREFIX: Final = "MEDHOP_"
DEFAULT_PRESET: Final = "local"

# `paper`: what the paper's text says. `released`: what its public code really did. `local`: measured on two
# CPU cores with the embedded 0.5B model (benchmarks/).
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "paper": {
        "backend": "sglang",
        "lm_model": "Qwen/Qwen2.5-7B-Instruct",
        "context_tokens": 8192,
        "embedder": "abhinand/MedEmbed-small-v0.1",
        "embed_title": False,
        "candidates": 90,
        "pool": 200,
        "evidence": 20,
        "hop_evidence": 20,
        "reranker": "flashrank",
        "reranker_model": "ms-marco-MiniLM-L-12-v2",
    },
    "released": {
        "backend": "sglang",
        "lm_model": "Qwen/Qwen2.5-7B-Instruct",
        "context_tokens": 8192,
        "embedder": "abhinand/MedEmbed-small-v0.1",
        "embed_title": False,
        "candidates": 20,
        "search": "mmr",
        "mmr_fetch": 20,
        "pool": 200,
        "evidence": 20,
        "hop_evidence": 20,
        "reranker": "flashrank",
        "reranker_model": "ms-marco-MultiBERT-L-12",
        "unvalidated": "draft",
    },
    "local": {
        "backend": "llamacpp",
        "lm_model": "qwen2.5-coder-0.5b-instruct-q4_k_m",
        "context_tokens": 4096,
        "plan_by": "rules",
        "titles_answer_hops": True,
        "readings": 2,
        "embedder": "all-MiniLM-L6-v2",
        "embed_title": True,
        "max_repairs": 1,
        "use_model_judges": False,
        "lexical": True,
        "candidates": 24,
        "pool": 24,
        "evidence": 12,
        "first_evidence": 6,
        "hop_evidence": 4,
        "neighbours_of": 1,
        "reranker": "late_interaction",
    },
}

# Settings that differ between machines: where things are, how long one waits for them, and what may be kept.
PLACES: Final = frozenset(
    {
        "home",
        "index",
        "graph",
        "gfm_model",
        "lm_url",
        "api_key",
        "timeout",
        "retries",
        "port",
        "lm_cache",
        "prefix_cache",
        "orphanet",
        "sglang_python",
    }
)


def _default_home() -> Path:
    return Path(platformdirs.user_cache_dir("medhop"))


class Settings(BaseModel):
    """Every constant of retrieval, program and model server.

    Raises:
        SettingsError: from :meth:`load` and :meth:`replace`, naming each bad field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    preset: str = Field(DEFAULT_PRESET, description="Name of the preset that the other values started from.")

    # Places
    home: Path = Field(
        default_factory=_default_home, description="Folder of model files, indexes and the response cache."
    )
    index: str = Field(
        "", description="Index folder, or http(s)://host:port/name of a Chroma server. Empty: home/index."
    )
    orphanet: Path | None = Field(None, description="Folder or file with Orphadata or GARD tables; none: no expansion.")
    graph: Path | None = Field(None, description="Folder of the knowledge graph. None: home/graph.")
    gfm_model: Path | None = Field(None, description="Folder of the weights of graph_scorer gfm. None: graph/gfm.")

    # Index
    chunk_size: int = Field(512, ge=32, le=8192, description="Characters of a chunk.")
    chunk_overlap: int = Field(32, ge=0, description="Characters that neighbouring chunks share.")
    embedder: str = Field("all-MiniLM-L6-v2", description="Artefact name, folder or hub id of the embedding model.")
    embed_title: bool = Field(True, description="Embed 'title: chunk' instead of the bare chunk.")
    index_search: Literal["exact", "hnsw"] = Field(
        "exact", description="exact: brute force, repeatable. hnsw: approximate, for millions of chunks."
    )

    # Retrieval
    candidates: int = Field(30, ge=1, le=1000, description="Chunks per query string (the paper's k).")
    search: Literal["similarity", "mmr"] = Field("similarity", description="How candidates are picked.")
    mmr_lambda: float = Field(0.6, ge=0, le=1, description="Weight of relevance against diversity in mmr.")
    mmr_fetch: int = Field(60, ge=1, le=5000, description="Chunks that mmr picks from.")
    lexical: bool = Field(False, description="Fuse BM25 with dense search by reciprocal rank (eta = 60).")
    pool: int = Field(60, ge=1, le=1000, description="Unique candidates that are reranked at most.")
    evidence: int = Field(8, ge=1, le=100, description="Passages that the model reads at once, at most.")
    first_evidence: int | None = Field(
        None,
        ge=1,
        le=100,
        description="Passages of the first search, where no hop has brought any, evidence at most; none: evidence.",
    )
    hop_evidence: int = Field(3, ge=1, le=100, description="Passages that a hop or repair adds to those read before.")
    neighbours_of: int = Field(
        0, ge=0, le=100, description="Best passages that are read with the chunks before and after them."
    )
    reranker: Literal["flashrank", "late_interaction", "none"] = Field(
        "late_interaction", description="What orders the pool."
    )
    reranker_model: str = Field(
        "ms-marco-MiniLM-L-12-v2", description="FlashRank model name; other rerankers ignore it."
    )

    # Graph
    retriever: Literal["dense", "graph", "hybrid"] | None = Field(
        None,
        description="dense: the vector index alone. graph: the knowledge graph. hybrid: both, fused by rank. "
        "None: what the program is made for.",
    )
    graph_scorer: Literal["pagerank", "gfm"] = Field("pagerank", description="What scores the graph's entities.")
    damping: float = Field(0.5, gt=0, lt=1, description="Damping of personalised PageRank.")
    top_entities: int = Field(20, ge=1, le=1000, description="Best entities that score passages, for gfm.")
    link_floor: float = Field(0.8, ge=0, le=1, description="Cosine below which a query entity links to nothing.")

    # Program
    plan_by: Literal["model", "rules"] = Field(
        "model",
        description="Who routes, plans and names query entities: the model, or rules over words, for small models.",
    )
    max_hops: int = Field(3, ge=0, le=6, description="Sub-questions of a multi-hop question at most.")
    titles_answer_hops: bool = Field(
        False, description="Where the model finds no disease, take the title of the best passage, as in encyclopaedias."
    )
    readings: int = Field(
        0,
        ge=0,
        le=3,
        description="Times that a draft is read, from the best 1, 4 and 16 passages, each time held to phrases in "
        "them; the most probable counts. Where none could be an answer, as for yes and no, the last is read freely. "
        "A hop whose free reply is refused is read again, held. 0: once, in the model's own words, from all passages. "
        "Above 0, a reply to a question with options is held to their texts in place of their letters, in any program.",
    )
    max_repairs: int = Field(3, ge=0, le=10, description="Repair rounds after the first draft at most.")
    use_repair: bool = Field(True, description="Repair the query after a failed check.")
    use_self_reference_check: bool = Field(True, description="Refuse drafts that repeat the question's subject.")
    use_generic_filter: bool = Field(True, description="Refuse category words as answers.")
    use_type_check: bool = Field(True, description="Refuse drafts of another type than asked.")
    use_grounding_check: bool = Field(True, description="Refuse drafts that the evidence does not support.")
    use_model_judges: bool = Field(True, description="Ask the model what Python cannot decide; else that passes.")
    use_quote_check: bool = Field(True, description="Ask for a supporting quote for the types that need one.")
    use_expansion: bool = Field(True, description="Add Orphanet names and genes to the query strings.")
    use_gene_hints: bool = Field(True, description="Offer Orphanet gene candidates to gene hops.")
    expansion_disorders: int = Field(3, ge=0, le=50, description="Orphanet disorders per question.")
    expansion_genes: int = Field(10, ge=0, le=100, description="Genes per disorder.")
    expansion_terms: int = Field(10, ge=0, le=100, description="Expansion terms per question.")
    expansion_queries: int = Field(5, ge=0, le=100, description="Terms that become query strings.")
    expansion_rerank: int = Field(3, ge=0, le=100, description="Terms that join the rerank query.")
    gene_candidates: int = Field(15, ge=0, le=100, description="Gene symbols in the prompt of a gene hop.")
    rounds: int = Field(3, ge=1, le=10, description="Rounds of Hybrid-IR and the iterative baselines (the paper's T).")
    sub_questions: int = Field(3, ge=1, le=10, description="Sub-questions of one round at most (the paper's m).")
    stop_early: bool = Field(False, description="End the rounds when one brings no new sub-question.")
    unvalidated: Literal["null", "draft"] = Field(
        "null", description="Answer of a question whose drafts all failed: none, or the last draft."
    )

    # Model server
    backend: Literal["llamacpp", "sglang", "openai"] = Field("llamacpp", description="Kind of model server.")
    lm_url: str = Field(
        "", description="Base URL of a running server, such as http://127.0.0.1:30000. Empty: loopback at port."
    )
    lm_model: str = Field("qwen2.5-coder-0.5b-instruct-q4_k_m", description="Artefact, model or served name.")
    api_key: SecretStr | None = Field(None, description="Bearer token of the server; never saved or shown.")
    port: int = Field(30000, ge=1, le=65535, description="Loopback port of a server that this software starts.")
    context_tokens: int = Field(4096, ge=512, description="Context window of one request, in tokens.")
    slots: int = Field(1, ge=1, le=64, description="Requests that a server started here handles at once.")
    temperature: float = Field(0.0, ge=0, le=2, description="Sampling temperature.")
    seed: int = Field(42, ge=0, lt=2**32, description="Sampling seed.")
    timeout: float = Field(120.0, gt=0, description="Seconds without a byte from the server before giving up.")
    retries: int = Field(2, ge=0, le=10, description="More tries of one call after an error that may pass.")
    prefix_cache: bool = Field(
        True,
        description="Let llama.cpp read only what is new in a prompt. That moves the last digits of its probabilities, "
        "so that near ties depend on what it read before. Off, with slots = 1: one reply whatever was asked before.",
    )
    lm_cache: bool = Field(False, description="Keep the model's replies on disk, apart for each server and model.")
    sglang_python: Path | None = Field(None, description="Python of the environment that holds SGLang.")

    @model_validator(mode="after")
    def _check_pairs(self) -> Settings:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"chunk_overlap ({self.chunk_overlap}) must be below chunk_size ({self.chunk_size})")
        if self.evidence > self.pool:
            raise ValueError(f"evidence ({self.evidence}) must not exceed pool ({self.pool})")
        if self.hop_evidence > self.evidence:
            raise ValueError(f"hop_evidence ({self.hop_evidence}) must not exceed evidence ({self.evidence})")
        return self

    @classmethod
    def load(cls, preset: str | None = None, *, file: Path | None = None, **overrides: Any) -> Settings:  # noqa: ANN401
        """Combine preset, TOML file, environment and ``overrides``.

        Args:
            preset: One of :data:`PRESETS`; default ``MEDHOP_PRESET``, the file's ``preset``, or ``local``.
            file: TOML file of settings; default ``MEDHOP_SETTINGS``. Keys are the field names.
            **overrides: Field values that win over everything else.
        """
        env = {k.removeprefix(ENV_PREFIX).lower(): v for k, v in os.environ.items() if k.startswith(ENV_PREFIX)}
        path = file or (Path(env["settings"]) if env.get("settings") else None)
        env.pop("settings", None)
        from_file = _read_toml(path) if path else {}
        name = preset or env.get("preset") or from_file.get("preset") or DEFAULT_PRESET
        if name not in PRESETS:
            raise SettingsError(f"unknown preset {name!r}", hint=f"Choose one of {', '.join(PRESETS)}.")
        unset = {k for k, v in env.items() if v == ""}
        values = (
            PRESETS[name] | from_file | {k: v for k, v in env.items() if k not in unset} | overrides | {"preset": name}
        )
        return _validated(cls, values)

    def replace(self, **overrides: Any) -> Settings:  # noqa: ANN401
        """A copy with other values, validated again."""
        return _validated(type(self), {**self.model_dump(), **overrides})

    def digest(self) -> str:
        """Hex SHA-256 of every value that can change an answer."""
        state = self.model_dump(mode="json", exclude=set(PLACES) | {"preset"})
        state["orphanet"] = self.orphanet is not None  # where the tables are changes nothing, that there are some does
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()

    @property
    def index_location(self) -> str:
        """Where the index is: ``index``, or the default folder."""
        return self.index or str(self.home / "index")

    @property
    def graph_folder(self) -> Path:
        """Where the knowledge graph is: ``graph``, or the default folder."""
        return self.graph or self.home / "graph"

    @property
    def gfm_folder(self) -> Path:
        """Where the weights of the scorer ``gfm`` are: ``gfm_model``, or ``gfm`` in the graph's folder."""
        return self.gfm_model or self.graph_folder / "gfm"

    @property
    def base_url(self) -> str:
        """The model server's address without a trailing slash or ``/v1``."""
        return (self.lm_url or f"http://127.0.0.1:{self.port}").rstrip("/").removesuffix("/v1")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read settings file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {path} is not valid TOML: {error}") from error


def _validated(cls: type[Settings], values: dict[str, Any]) -> Settings:
    try:
        return cls.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']} (got {_shown(e)})" if e["loc"] else e["msg"]
            for e in error.errors()
        )
        raise SettingsError(problems, hint="`medhop settings` lists every field with its bounds.") from None


def _shown(error: Any) -> str:  # noqa: ANN401  (pydantic's ErrorDetails)
    return "a secret" if "api_key" in error["loc"] else repr(error["input"])[:80]
