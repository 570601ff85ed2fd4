"""Ablations: every override does something, runs are shared and resumed, numbers are those of their definition."""

import doctest
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations, cycle, product
from statistics import fmean

import dspy
import pytest
from typer.testing import CliRunner

from medhop_dspy.answers import normalise
from medhop_dspy.errors import ArtefactError, InputError, SettingsError
from medhop_dspy.evaluation import ablations, determinism
from medhop_dspy.evaluation.ablation_runs import Ablated, SharedParts, run_ablations
from medhop_dspy.evaluation.ablation_table import TABLE, as_markdown, tabulate, unresolved, write_table
from medhop_dspy.evaluation.ablations import (
    CONFIGURATIONS,
    EXTRA,
    FACTORIAL,
    FULL,
    HYBRID_FULL,
    HYBRID_IR,
    PAPER,
    VALIDATORS,
    choose,
)
from medhop_dspy.evaluation.outcomes import Result
from medhop_dspy.evaluation.published import AGREEMENT
from medhop_dspy.evaluation.records import ChoiceQuestion
from medhop_dspy.evaluation.results import read_results
from medhop_dspy.evaluation.validators import effects, overlaps
from medhop_dspy.graph import build as graph
from medhop_dspy.graph.dictionary import DictionaryExtractor
from medhop_dspy.pipelines.program import as_record
from medhop_dspy.retrieval.embedding import Embedder
from medhop_dspy.rows import csv_records, read_utf8
from medhop_dspy.settings import PRESETS, Settings
from medhop_dspy.trace import Attempt, Trace, Verdict
from tests.conftest import ROOT, prompt_of, script_app
from tests.evaluation.test_report import tables
from tests.evaluation.worlds import QUESTIONS, reply
from tests.lm.conftest import MODEL, completion
from tests.pipelines.conftest import FACTS, MULTIHOP, script
from tests.retrieval.tiny_cross_encoder import write_cross_encoder
from tests.retrieval.tiny_encoder import make_encoder

RERANKERS = {
    "ms-marco-MiniLM-L-12-v2": ("flashrank-MiniLM-L-12-v2_Q.onnx", 1.0),
    "ms-marco-MultiBERT-L-12": ("flashrank-MultiBERT-L12_Q.onnx", -1.0),
}
WORDS = sorted({word for text in FACTS.values() for word in normalise(text).split()})


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Settings over a real index of 120 pages, with minute models that need no download."""
    from medhop_dspy.retrieval.index import Index

    home = tmp_path_factory.mktemp("home")
    pages = FACTS | {f"Page {n}": f"Page {n} is about {' '.join(WORDS[n % 40 : n % 40 + 6])}." for n in range(112)}
    lines = [{"id": title, "title": title, "url": "", "text": text} for title, text in pages.items()]
    (home / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, (onnx, overlap) in RERANKERS.items():
        write_cross_encoder(home / "models" / name, onnx, WORDS, overlap=(overlap,))
    settings = Settings(
        home=home, index=str(home / "index"), embedder=str(make_encoder(home / "encoder")), orphanet=None,
        reranker="none", chunk_size=64, chunk_overlap=8, evidence=6, hop_evidence=2, pool=12, candidates=8,
    )  # fmt: skip
    Index.build(settings.index, home / "corpus.jsonl", Embedder.from_settings(settings), settings)[0].close()
    return settings


@pytest.fixture(scope="module")
def parts(world):
    with SharedParts(world.replace(orphanet=ROOT / "data" / "orphanet")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph_parts(world):
    """Parts with a graph over the pages of the world."""
    with SharedParts(world) as opened:
        index = opened.build("medhopper", world).retriever.index
        graph.build(world.graph_folder, index, Embedder.from_settings(world), DictionaryExtractor(NAMES))
        yield opened


class Recording:
    """A retriever that keeps what it was asked for."""

    def __init__(self, inner):
        self.inner = inner
        self.dense = inner.dense
        self.asked = []

    def search(self, queries, k, rerank_query=None):
        self.asked.append((tuple(queries), k, rerank_query))
        return self.inner.search(queries, k, rerank_query)


def observe(program, lm, engine, question):
    """Every prompt, every search, and all that is reported of one question, times aside."""
    program.retriever = Recording(program.retriever)
    with dspy.context(lm=lm):
        record = as_record(program(question=question))
    for timed in (record, record["trace"]):
        timed.pop("seconds")
    record["trace"].pop("calls")
    return [prompt_of(r) for r in engine.requests], program.retriever.asked, record


# ---------------------------------------------------------------- every override does something

DRAFT, HOP = "Answer the question from the evidence. Give", "Answer the question from the evidence with one"
PLAN = "Split the question"
NEVER = {DRAFT: "fibrillin gene region nine", HOP: "unknown"}
TWO_HOPS = {HOP: ["FBN1", "chromosome 15"]}
ONE_SEARCH = {"Classify": '{"strategy": "direct", "answer_type": "yes_no"}', DRAFT: "yes"}
DIRECT = "Is FBN2 a gene?"
DISORDERS = "amyotrophic lateral sclerosis, Bardet-Biedl syndrome, osteogenesis imperfecta type 3 and Gaucher disease"
GENES = f"Which gene is mutated in {DISORDERS}?"
GENE_HOP = {
    "Classify": '{"strategy": "multihop", "answer_type": "gene"}',
    PLAN: '{"hops": [{"question": "Which gene is mutated in Marfan syndrome?", "type": "gene"}]}',
}
TABLES = {"orphanet": ROOT / "data" / "orphanet"}
OCHRONOSIS = {
    PLAN: '{"hops": [{"question": "What is the disease with blue-black pigmentation?", "type": "disease"}]}',
    HOP: "blue-black pigmentation",
}
WIDE = {"evidence": 100, "pool": 200, "candidates": 100, "context_tokens": 16_000}
ONE_CHECK = dict.fromkeys([*VALIDATORS.values(), "use_quote_check", "use_repair"], False)

# For each setting that a configuration sets: other values of it, and a question where it shows.
SCENARIOS = {
    "candidates": ((5,), DIRECT, ONE_SEARCH, WIDE),
    "search": (("similarity", "mmr"), DIRECT, ONE_SEARCH, {"mmr_fetch": 50}),
    "mmr_lambda": ((0.0,), DIRECT, ONE_SEARCH, {"search": "mmr"}),
    "mmr_fetch": ((8,), DIRECT, ONE_SEARCH, {"search": "mmr", "mmr_lambda": 0.1}),
    "lexical": ((False, True), DIRECT, ONE_SEARCH, {}),
    "pool": ((6,), DIRECT, ONE_SEARCH, {"reranker": "flashrank", "candidates": 100}),
    "evidence": ((6,), DIRECT, ONE_SEARCH, WIDE),
    "first_evidence": ((None, 3), DIRECT, ONE_SEARCH, WIDE),
    "hop_evidence": ((1,), MULTIHOP, TWO_HOPS, {**WIDE, "evidence": 20}),
    "neighbours_of": ((0, 1), DIRECT, ONE_SEARCH, {}),
    "reranker": (("none", "flashrank"), DIRECT, ONE_SEARCH, {}),
    "reranker_model": (tuple(RERANKERS), MULTIHOP, TWO_HOPS, {"reranker": "flashrank"}),
    "plan_by": (("model", "rules"), MULTIHOP, TWO_HOPS, {}),
    "max_hops": ((0,), MULTIHOP, TWO_HOPS, {}),
    "readings": ((0, 2), MULTIHOP, TWO_HOPS, {}),
    "titles_answer_hops": ((False, True), MULTIHOP, OCHRONOSIS, {**WIDE, "candidates": 400, "reranker": "flashrank"}),
    "max_repairs": ((0,), MULTIHOP, NEVER, {}),
    "use_repair": ((False, True), MULTIHOP, NEVER, {}),
    "use_model_judges": ((False, True), DIRECT, ONE_SEARCH, {}),
    "use_generic_filter": ((False, True), "What is mutated in Marfan syndrome?", {DRAFT: "gene"}, ONE_CHECK),
    "use_type_check": ((False, True), MULTIHOP, {DRAFT: "connective tissue"}, ONE_CHECK),
    "use_grounding_check": ((False, True), MULTIHOP, {DRAFT: "Chromosome 21"}, ONE_CHECK),
    "use_self_reference_check": (
        (False, True), "What disorder is Marfan syndrome?", {DRAFT: "Marfan syndrome"}, ONE_CHECK
    ),
    "use_quote_check": ((False, True), "What is the half-life of digoxin?", {DRAFT: "36 hours"}, {**ONE_CHECK, **WIDE}),
    "use_expansion": ((False, True), GENES, GENE_HOP, TABLES),
    "use_gene_hints": ((False, True), GENES, GENE_HOP, TABLES),
    "expansion_disorders": ((1,), GENES, GENE_HOP, TABLES),
    "expansion_genes": ((1,), GENES, GENE_HOP, TABLES),
    "expansion_terms": ((1,), GENES, GENE_HOP, {**TABLES, "expansion_queries": 20}),
    "expansion_queries": ((1,), GENES, GENE_HOP, {**TABLES, "expansion_terms": 20}),
    "expansion_rerank": ((0,), GENES, GENE_HOP, {**TABLES, "expansion_terms": 20}),
    "gene_candidates": ((1,), GENES, GENE_HOP, TABLES),
    "unvalidated": (("null", "draft"), MULTIHOP, NEVER, {"use_repair": False}),
}  # fmt: skip
OVERRIDES = {
    (name, value)
    for each in CONFIGURATIONS.values()
    if each.program == "medhopper"
    for name, value in each.overrides.items()
}
NAMES = {"Marfan syndrome": "disease", "FBN1": "gene", "FBN2": "gene", "connective tissue": "anatomy"}
ROUNDS = {
    "Break the question": '{"questions": ["Which gene is mutated in Marfan syndrome?"]}',
    "Ask only for what": [f'{{"questions": ["What does FBN1 do in tissue {n}?"]}}' for n in range(1, 9)],
    "Copy from the question": '{"entities": ["FBN1"]}',
    "Answer the question from the evidence in a few": "FBN1",
    "Answer the question from what is known": "15",
}


def scripted(changes):
    """The script with ``changes``; a list is answered in turn."""
    turns = {start: cycle(value) for start, value in changes.items() if isinstance(value, list)}
    return script(changes | {start: lambda request, turn=turn: next(turn) for start, turn in turns.items()})


@pytest.mark.parametrize(("name", "value"), sorted(OVERRIDES - {("index_search", "exact"), ("index_search", "hnsw")},
                                                   key=str))  # fmt: skip
def test_every_override_changes_what_is_asked_searched_or_reported(name, value, world, parts, scripted_lm):
    others, question, changes, base = SCENARIOS[name]
    other = next(other for other in others if other != value)
    seen = []
    for each in (other, value):
        settings = world.replace(**{**base, name: each})
        seen.append(observe(parts.build("medhopper", settings), *scripted_lm(scripted(changes)), question))
    assert seen[0] != seen[1]


def test_every_configuration_of_hybrid_ir_searches_or_asks_in_another_way(world, graph_parts, scripted_lm):
    seen = {}
    for each in HYBRID_IR:
        program = graph_parts.build(each.program, each.apply(world.replace(hop_evidence=6)))
        lm, engine = scripted_lm(scripted(ROUNDS))
        with dspy.context(lm=lm):
            record = as_record(program(question=MULTIHOP))
        assert len(record["hops"]) == each.overrides["rounds"], each.name
        assert not record["trace"]["failures"], each.name
        found = [search["graph_used"] for search in record["trace"]["searches"]]
        assert found == ([] if each.overrides["retriever"] == "dense" else [True] * each.overrides["rounds"])
        seen[each.name] = [prompt_of(request) for request in engine.requests]
    assert len({json.dumps(prompts) for prompts in seen.values()}) == len(HYBRID_IR) == 15


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_the_kind_of_search_decides_whether_all_vectors_are_read(kind, world, tmp_path):
    place = shutil.copytree(world.index, tmp_path / "index", ignore=shutil.ignore_patterns("exact"))
    settings = replace_index(world, place, kind)
    with SharedParts(settings) as opened:
        found = opened.build("medhopper", settings).retriever.search([MULTIHOP], 3)
    assert len(found) == 3
    assert (place / "exact").exists() is (kind == "exact")


def replace_index(settings, place, kind):
    return CONFIGURATIONS["hnsw"].apply(settings.replace(index=str(place))).replace(index_search=kind)


@pytest.mark.parametrize("configuration", [*PAPER[1:], *EXTRA], ids=lambda each: each.name)
def test_every_configuration_is_another_program_or_other_settings(configuration, world):
    base = world.replace(**TABLES, reranker="flashrank", readings=2)
    changed = configuration.apply(base).digest() != base.digest()
    assert changed is (configuration.program == "medhopper")


# ---------------------------------------------------------------- the table of configurations


def test_the_papers_fourteen_are_all_there_and_names_are_unique():
    assert len(PAPER) == 14
    assert len({each.name for each in (*PAPER, *EXTRA, *FACTORIAL)}) == 14 + len(EXTRA) + 16


def test_the_names_are_those_of_the_published_answers(shared):
    names = {path.name.split("__")[1] for path in (shared / "medhopqa" / "ablations").glob("*.csv")}
    assert {"full_pipeline" if each.name == FULL else each.name for each in PAPER} == names


def test_the_published_agreement_is_that_of_the_published_answers(shared):
    answers = {}
    for path in (shared / "medhopqa" / "ablations").glob("*.csv"):
        rows = csv_records(read_utf8(path), path, ("QIDX", "Answer"))
        answers[path.name.split("__")[1]] = {row["qidx"]: normalise(row["answer"]) for _, row in rows}

    def same(first, second):
        both = answers[first].keys() & answers[second].keys()
        assert len(both) == 1000
        return fmean(answers[first][name] == answers[second][name] for name in both)

    with_full = [same("full_pipeline", name) for name in answers if name != "full_pipeline"]
    trio = ("orpha_expansion_cap5", "orpha_expansion_cap20", "orpha_gene_hints_off")
    assert f"{min(with_full):.1%} to {max(with_full):.1%}".replace("%", " %") == AGREEMENT[0].value
    assert {same(*pair) for pair in combinations(trio, 2)} == {1.0} and AGREEMENT[1].value == "100 %"


def test_a_preset_brings_all_its_values_and_leaves_model_and_index(world):
    for name, values in PRESETS.items():
        applied = CONFIGURATIONS[f"preset_{name}"].apply(world)
        kept = {"backend", "lm_model", "context_tokens", "embedder", "embed_title"}
        assert all(getattr(applied, field) == value for field, value in values.items() if field not in kept)
        assert all(getattr(applied, field) == getattr(world, field) for field in (*kept, "home", "index", "chunk_size"))
        assert applied.plan_by == values.get("plan_by", "model")  # also where the settings before said otherwise


@pytest.mark.parametrize(
    ("base", "name", "expected"),
    [
        ({"evidence": 20, "hop_evidence": 20, "pool": 200}, "rerank_topn_10", (10, 10, 200)),
        ({"evidence": 20, "hop_evidence": 20, "pool": 200}, "rerank_topn_30", (30, 30, 200)),
        ({"evidence": 12, "hop_evidence": 4, "pool": 24}, "rerank_topn_10", (10, 4, 24)),
        ({"evidence": 12, "hop_evidence": 4, "pool": 24}, "rerank_topn_30", (30, 4, 30)),
    ],
)
def test_what_is_bound_to_the_evidence_follows(base, name, expected):
    applied = CONFIGURATIONS[name].apply(Settings(**base))
    assert (applied.evidence, applied.hop_evidence, applied.pool) == expected


def test_overrides_are_validated_again():
    with pytest.raises(SettingsError, match="evidence"):
        ablations.Configuration("x", "x", {"evidence": 0}).apply(Settings())


def test_choosing():
    assert [each.name for each in choose(["lexical", "hnsw", "lexical"])] == [FULL, "lexical", "hnsw"]
    assert choose(["paper"]) == list(PAPER)
    assert len(choose(["all"])) == len(CONFIGURATIONS) == len(PAPER) + len(EXTRA) + len(FACTORIAL) + len(HYBRID_IR)
    assert len(choose(["factorial"])) == 17
    hybrid = [each.name for each in choose(["hybrid_ir"])]
    assert len(hybrid) == 15 and hybrid[0] == HYBRID_FULL
    assert [each.name for each in choose(["hybrid_ir_dense_T1"])] == [HYBRID_FULL, "hybrid_ir_dense_T1"]
    assert choose(["hybrid_ir_dense_T1", "lexical"])[0].name == FULL
    with pytest.raises(InputError, match="unknown configuration 'fool'"):
        choose(["fool"])
    with pytest.raises(InputError, match="no configuration"):
        choose([])


@pytest.mark.parametrize("module", [ablations, determinism])
def test_examples_in_docstrings(module):
    done = doctest.testmod(module)
    assert done.attempted and not done.failed


# ---------------------------------------------------------------- running


@contextmanager
def unwatched(name, seed):
    yield lambda state: None


@pytest.fixture
def run(world, parts, scripted_lm, tmp_path):
    """``run(names, seeds, **overrides)`` -> (ablated, skipped, engines); a model that errs at odd seeds."""

    def start(names, seeds, questions=QUESTIONS, opened=parts, first=None, **overrides):
        engines = []

        def make_lm(settings):
            def answers(request):
                if "What is the half-life" in prompt_of(request) and settings.seed % 2:
                    return "40 hours"
                if first and QUESTIONS[0].text in prompt_of(request) and "as short as possible" in prompt_of(request):
                    return first
                return script({DRAFT: reply})(request)

            lm, engine = scripted_lm(answers)
            engines.append(engine)
            return lm

        settings = world.replace(**{"lm_cache": True, "max_hops": 0, **WIDE, "candidates": 400, **overrides})
        found = run_ablations(
            choose(names), seeds, questions, tmp_path / "runs", settings,
            build=opened.build, make_lm=make_lm, watch=unwatched,
        )  # fmt: skip
        return *found, engines

    return start


def test_each_seed_is_asked_anew_and_a_second_call_asks_nothing(run, tmp_path):
    ablated, skipped, engines = run(["single_pass"], [42, 43])
    assert [each.configuration.name for each in ablated] == [FULL, "single_pass"]
    assert skipped == []
    assert len(engines) == 2 and min(len(engine.requests) for engine in engines) > 8
    assert ablated[1].runs[1][2].answer == "40 hours" != ablated[1].runs[0][2].answer
    places = [tmp_path / "runs" / "full" / f"seed-{seed}" / "run.json" for seed in (42, 43)]
    manifests = [json.loads(place.read_text()) for place in places]
    assert [each["settings"]["seed"] for each in manifests] == [42, 43]
    assert manifests[0]["settings_digest"] != manifests[1]["settings_digest"]
    again, _, engines = run(["single_pass"], [42, 43])
    assert [engine.requests for engine in engines] == [[], []]
    assert again == ablated


def test_what_is_the_same_is_run_once_and_what_cannot_be_run_is_named(run, world, tmp_path):
    names = ["answer_draft", "orpha_expansion_off", "preset_paper"]
    with SharedParts(world) as opened:
        ablated, skipped, _ = run(names, [42], opened=opened, unvalidated="draft", home=tmp_path)
    assert [(each.configuration.name, each.same_as) for each in ablated] == [(FULL, ""), ("answer_draft", FULL)]
    assert ablated[0].runs == ablated[1].runs
    assert not (tmp_path / "runs" / "answer_draft").exists()
    reasons = {each.configuration.name: (each.reason, each.exit_code) for each in skipped}
    assert "no rare-disease tables" in reasons["orpha_expansion_off"][0] and reasons["orpha_expansion_off"][1] == 0
    assert reasons["preset_paper"][1] == ArtefactError.exit_code


def test_the_reference_must_run(world, scripted_lm, tmp_path):
    with SharedParts(world.replace(embedder=str(tmp_path))) as parts, pytest.raises(ArtefactError):
        run_ablations(
            choose(["lexical"]), [42], QUESTIONS, tmp_path / "runs", world,
            build=parts.build, make_lm=lambda settings: scripted_lm(reply)[0], watch=unwatched,
        )  # fmt: skip


@pytest.mark.parametrize("seeds", [[], [42, 42]])
def test_seeds_are_different(run, seeds):
    with pytest.raises(InputError, match="wanted at least one, each once"):
        run([FULL], seeds)


# ---------------------------------------------------------------- numbers


def result(name, answer, right, **fields):
    gold = replace(QUESTIONS[0], id=name)
    return Result(gold, "k", "answered", answer=answer, draft=answer or "", em=right, lm_calls=3, seconds=2.0, **fields)


def test_hybrid_ir_on_multiple_choice_is_compared_with_all_of_it(world, graph_parts, scripted_lm, tmp_path):
    """The model is right if it has been told what only the second round asks for."""
    choice = {"Choose the option": lambda request: "A" if "in tissue" in prompt_of(request) else "B"}
    questions = [ChoiceQuestion(str(n), MULTIHOP, {"A": "15", "B": "21"}, "A", "", "MedQA") for n in range(2)]
    ablated, skipped = run_ablations(
        choose(["hybrid_ir_hybrid_T1"]), [42], questions, tmp_path / "runs", world,
        build=graph_parts.build, make_lm=lambda settings: scripted_lm(scripted(ROUNDS | choice))[0], watch=unwatched,
    )  # fmt: skip
    assert not skipped and [each.configuration.name for each in ablated] == [HYBRID_FULL, "hybrid_ir_hybrid_T1"]
    ablation = tabulate(ablated, skipped, [42], 0.0, "mcq.jsonl")
    assert (ablation.measure, ablation.failed) == ("accuracy", 0)
    assert [row.em.mean for row in ablation.rows] == [1.0, 0.0] and ablation.rows[1].against_full.lost == 2
    text = as_markdown(ablation)
    assert f"difference: less that of {HYBRID_FULL}" in text and "accuracy: share of questions whose right" in text
    rounds = tables([tmp_path / "runs" / each.configuration.name / "seed-42" for each in ablated])
    assert {"T = 1", "T = 3"} < rounds["Rounds: hybrid_ir on questions without a file", 0]["hybrid"].keys()


def failed(name):
    return Result(replace(QUESTIONS[0], id=name), "k", "failed", error="ReplyError: x", failed_in="program")


def test_determinism_by_its_definition():
    runs = [
        [result("1", "a", True), result("2", "b", False), result("3", None, False), result("4", "x", True)],
        [result("1", "a", True), result("2", "c", True), result("3", None, False), failed("4")],
    ]
    found = determinism.determinism(runs)
    assert (found.runs, found.n, found.identical, found.agreement) == (2, 3, 2 / 3, 2 / 3)
    assert found.kappa == pytest.approx((2 / 3 - 2 / 9) / (1 - 2 / 9))
    assert found.em_sd == 0.0
    same = determinism.determinism([runs[0], runs[0], runs[0]])
    assert (same.identical, same.kappa, same.em_sd) == (1.0, 1.0, 0.0)
    other = [*runs[0][:3], result("4", "y", False)]
    assert determinism.determinism([runs[0], other]).em_sd == pytest.approx(0.25 / 2**0.5)
    with pytest.raises(InputError, match="at least 2"):
        determinism.determinism(runs[:1])
    with pytest.raises(InputError, match="answered in all"):
        determinism.determinism([runs[0], [failed("1")]])


def cells(outcome):
    """Sixteen cells of three questions; ``outcome`` gets what is on as +1 and -1."""
    table = {}
    for signs in product((1, -1), repeat=4):
        on = dict(zip(VALIDATORS, signs, strict=True))
        table[frozenset(v for v in VALIDATORS if on[v] == 1)] = [outcome(on)] * 3
    return table


def test_effects_by_their_definition():
    found = effects(cells(lambda on: 0.5 + on["generic"] / 8 - on["generic"] * on["kind"] / 16))
    values = {each.validators: each.em.mean for each in found}
    assert len(values) == 4 + 6
    assert values["generic",] == 0.25 and values["generic", "kind"] == -0.125
    assert {v for k, v in values.items() if k not in {("generic",), ("generic", "kind")}} == {0.0}
    assert unresolved(found[0].em, 3) == "" and unresolved(found[1].em, 3) == "not resolved at n = 3"


def test_two_checks_that_do_the_same_overlap():
    """Either check alone gains all there is to gain."""
    found = effects(cells(lambda on: float(on["generic"] == 1 or on["kind"] == 1)))
    values = {each.validators: each.em.mean for each in found}
    assert values["generic",] == values["kind",] == 0.5
    assert values["generic", "kind"] == -0.5


def test_an_incomplete_factorial_is_refused():
    table = cells(lambda on: 1.0)
    with pytest.raises(InputError, match="1 of the 16 combinations"):
        effects({on: y for on, y in table.items() if on})
    with pytest.raises(InputError, match="questions differ"):
        effects({**table, frozenset(): [1.0]})


def drafted(name, draft, *verdicts):
    attempts = (Attempt(0, (), (), draft, tuple(Verdict(check, False, "python") for check in verdicts)),)
    return result(name, None, False, trace=Trace("q", attempts=attempts))


def test_overlap_counts_first_drafts_that_both_refuse():
    alone = {
        "generic": [[drafted("1", "gene", "type"), drafted("2", "x"), drafted("3", "gene", "type")]],
        "kind": [[drafted("1", "gene", "type"), drafted("2", "x", "type"), drafted("3", "protein", "type")]],
        "grounding": [[drafted("1", "gene", "quote"), drafted("2", "x", "grounding"), drafted("3", "")]],
        "self_reference": [[failed("1")]],
    }
    drafts, refused, pairs = overlaps(alone)
    assert drafts == 4  # gene, x, gene and protein
    assert refused == {"generic": 2, "kind": 3, "grounding": 1, "self_reference": 0}
    found = {each.validators: (each.both, each.either, each.share) for each in pairs}
    assert found["generic", "kind"] == (1, 4, 0.25)
    assert found["kind", "grounding"] == (1, 3, 1 / 3)
    assert found["grounding", "self_reference"] == (0, 1, 0.0)


def test_the_tables_of_a_factorial(run, tmp_path):
    """The first question's answer is right by a synonym that no passage holds: only the grounding check refuses it."""
    questions = [replace(QUESTIONS[0], synonyms=("MFS1",)), *QUESTIONS[1:2]]
    ablated, skipped, _ = run(["factorial", "orpha_expansion_off"], [42], questions, first="MFS1")
    ablation = tabulate(ablated, skipped, [42], 0.0, "dev.jsonl")
    rows = {row.name: row for row in ablation.rows}
    full, everything, none = rows[FULL], rows["checks-generic-kind-grounding-self_reference"], rows["checks-none"]
    assert (full.em.mean, full.against_full, full.same_answers, full.withheld, full.failed) == (0.5, None, None, 0.5, 0)
    assert everything.same_as == FULL and everything.note == "same settings as full"
    assert (none.em.mean, none.against_full.difference.mean, none.same_answers, none.withheld) == (1.0, 0.5, 0.5, 0.0)
    assert (none.against_full.gained, none.against_full.lost, none.seeds) == (1, 0, None)
    values = {each.validators: each.em.mean for each in ablation.factorial.effects}
    assert values.pop(("grounding",)) == -0.5
    assert set(values.values()) == {0.0} and len(values) == 9
    assert ablation.factorial.drafts == 2
    assert ablation.factorial.refused == {"generic": 0, "kind": 0, "grounding": 1, "self_reference": 0}

    text = as_markdown(ablation)
    assert "2 questions of dev.jsonl, seeds 42." in text and "not resolved at n = 2" in text
    assert "Not run: orpha_expansion_off: no rare-disease tables" in text
    assert "| generic x kind" in text and "## Between seeds" not in text
    write_table(tmp_path, ablation)
    saved = json.loads((tmp_path / TABLE).read_text())
    assert saved["rows"][0]["em"]["mean"] == 0.5
    assert saved["rows"][1]["note"] == "same settings as full"
    assert saved["factorial"]["refused"]["grounding"] == 1
    assert saved["skipped"].keys() == {"orpha_expansion_off"}


def test_questions_count_as_right_if_most_seeds_are():
    """Right at 3, 2, 1 and 0 of three seeds, against never."""
    full = Ablated(CONFIGURATIONS[FULL], (tuple(result(n, "x", False) for n in "1234"),) * 3)
    runs = tuple(tuple(result(n, "a", n not in wrong) for n in "1234") for wrong in ("4", "43", "432"))
    other = Ablated(CONFIGURATIONS["lexical"], runs)
    row = tabulate([full, other], [], [1, 2, 3], 0.7, "x").rows[1]
    assert row.em.mean == row.against_full.difference.mean == pytest.approx(0.5)
    assert (row.against_full.gained, row.against_full.lost) == (2, 0)
    assert row.seeds.em_sd == pytest.approx(0.25)
    between = as_markdown(tabulate([full, other], [], [1, 2, 3], 0.7, "x")).split("## Between seeds")[1]
    assert "| lexical " in between and "as they are written" in between and "Temperature 0.7." in between
    between = as_markdown(tabulate([full, other], [], [1, 2, 3], 0.0, "x")).split("## Between seeds")[1]
    assert "Temperature 0: no sampling" in between


def test_the_same_answer_in_other_letters_is_the_same_here_and_in_a_report():
    first = [result("1", "β-Thalassemia", True), result("2", "a", True)]
    second = [result("1", "beta thalassemia", True), result("2", "b", True)]
    full, other = Ablated(CONFIGURATIONS[FULL], (tuple(first),)), Ablated(CONFIGURATIONS["lexical"], (tuple(second),))
    assert tabulate([full, other], [], [1], 0.0, "x").rows[1].same_answers == 0.5
    assert determinism.same_answers(zip(first, second, strict=True)) == 0.5
    assert determinism.same_answers([(first[0], failed("1"))]) is None
    assert determinism.determinism([first, second]).identical == 0.0


@pytest.mark.parametrize(("seeds", "temperature", "told"), [([42, 43], 0.0, 1), ([42, 43], 0.7, 0), ([42], 0.0, 0)])
def test_seeds_without_sampling_are_told(run, caplog, seeds, temperature, told):
    run([FULL], seeds, QUESTIONS[:1], temperature=temperature)
    assert caplog.text.count("2 seeds at temperature 0") == told


# ---------------------------------------------------------------- the script


COMMAND = script_app("ablate")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "dev.jsonl"
    rows = [{"QIDX": q.id, "Question": q.text, "answer": q.answer} for q in QUESTIONS[:2]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--configurations", "fool"], "unknown configuration 'fool'"),
        (["--configurations", " , "], "no configuration"),
        (["--seeds", "4x"], "seeds are '4x'"),
        (["--seeds", ""], "seeds are ''"),
        (["--min-hops", "5"], "none of the 2 questions"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_opened(data, tmp_path, arguments, message):
    done = CliRunner().invoke(COMMAND, [str(data), "--out", str(tmp_path / "out"), *arguments])
    assert isinstance(done.exception, InputError) and message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_as_a_process_an_expected_error_is_one_message_and_its_exit_code(data, tmp_path):
    line = [sys.executable, "programs/ablate.py", data, "--out", tmp_path, "--configurations", "fool"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert (done.returncode, done.stdout) == (InputError.exit_code, "")
    assert done.stderr.startswith("ablate: unknown configuration 'fool'") and "Traceback" not in done.stderr


def test_the_script_from_end_to_end_and_once_more(world, data, make_remote, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEDHOP_")]:
        monkeypatch.delenv(name)
    remote = make_remote()
    remote.replies = [completion("FBN1")]
    chosen = {
        **{"home": tmp_path, "index": world.index, "embedder": world.embedder, "chunk_size": 64, "chunk_overlap": 8},
        **{"reranker": "none", "backend": "openai", "retries": 0, "lm_url": remote.url, "lm_model": MODEL},
    }
    settings = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
    names = "single_pass hnsw preset_paper orpha_gene_hints_off"
    line = [str(data), "--out", str(tmp_path / "out"), "--seeds", "42, 43", "--configurations", names, *settings]

    done = CliRunner().invoke(COMMAND, line)
    assert done.exit_code == ArtefactError.exit_code, done.output  # FlashRank's model is not in this home
    assert "hnsw, seed 43" in done.stderr and "hnsw, seed" not in done.stdout
    assert done.stdout.startswith("# Ablation") and "Not a medical device." in done.stdout
    assert "Not run: preset_paper: " in done.stdout
    saved = json.loads((tmp_path / "out" / TABLE).read_text())
    assert [row["name"] for row in saved["rows"]] == [FULL, "single_pass", "hnsw"]
    assert saved["skipped"].keys() == {"preset_paper", "orpha_gene_hints_off"}
    assert len(read_results(tmp_path / "out" / "hnsw" / "seed-43")) == 2
    asked = remote.requests
    again = CliRunner().invoke(COMMAND, line)
    assert (again.exit_code, again.stdout, remote.requests) == (done.exit_code, done.stdout, asked)
