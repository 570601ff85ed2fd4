"""Every program of the registry: what makes it that system, what it costs at most, and that it needs what it says."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from medhop_dspy.cli.show import as_text
from medhop_dspy.errors import ArtefactError, InputError, ProgramError, SettingsError
from medhop_dspy.graph.retriever import GraphRetriever
from medhop_dspy.pipelines import medgraphrag
from medhop_dspy.pipelines.medgraphrag import summaries
from medhop_dspy.pipelines.registry import PROGRAMS, build, program_class
from medhop_dspy.pipelines.run import Run
from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.retrieval.fusion import reciprocal_rank_fusion
from medhop_dspy.retrieval.lexical import LexicalIndex
from medhop_dspy.retrieval.rerank import by_score
from medhop_dspy.retrieval.retriever import Retriever
from medhop_dspy.trace import SearchRecord
from tests.conftest import prompt_of, task_of
from tests.graph.hybrid_world import HybridWorld

QUESTION = "Which gene causes Marfan syndrome?"
CHAIN = "On which chromosome is the gene mutated in Marfan syndrome located?"
GRAPH_PROGRAMS = ["gfm_rag", "hipporag", "hybrid_ir", "medgraphrag"]
SUB_QUESTIONS = [
    "Which gene causes Marfan syndrome?",
    "Which drug treats it?",
    "What is FBN2?",
    "What is CAT?",
    "What?",
]
REPLIES = {
    "Classify": '{"strategy": "multihop", "answer_type": "gene"}',
    "Copy from the question, word": '{"constraints": []}',
    "Split the question": '{"hops": [{"question": "Which gene causes Marfan syndrome?", "type": "gene"}]}',
    "Copy from the question the names": '{"entities": ["Marfan syndrome"]}',
    "Break the question down": json.dumps({"questions": SUB_QUESTIONS}),
    "Ask only for what is still": '{"questions": ["Where does FBN1 lie?"]}',
    "Does": '"no"',
    "Is": '"no"',
    "The last search did not": "FBN1",
    "Cut the answer down": "FBN1",
    "Answer the question": "FBN1",
}


def reply(changes=None):
    replies = (changes or {}) | {start: value for start, value in REPLIES.items() if start not in (changes or {})}

    def answer(request):
        task = task_of(request).removeprefix("Task: ")
        value = next(v for start, v in replies.items() if task.startswith(start))
        return value(request) if callable(value) else value

    return answer


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = HybridWorld(tmp_path_factory.mktemp("hybrid"))
    yield made
    made.close()


@pytest.fixture
def ask(world, scripted_lm):
    """``ask(program, changes, question, **overrides)`` -> (prediction, engine)."""

    def run(name, changes=None, question=QUESTION, **overrides):
        lm, engine = scripted_lm(reply(changes))
        with dspy.context(lm=lm):
            return world.program(name, **overrides)(question=question), engine

    return run


def ids(passages):
    return [p.id for p in passages]


def test_the_registry_names_every_system():
    papers = {
        "zero_shot",
        "single_pass",
        "decomp_rag",
        "medhopper",
        "medcpt",
        "medrag",
        "imedrag",
        "gfm_rag",
        "hipporag",
    }
    assert {*PROGRAMS} == papers | {"medgraphrag", "hybrid_ir"}
    assert all(program_class(name).name == name for name in PROGRAMS)
    with pytest.raises(ProgramError, match="unknown program 'rag'"):
        program_class("rag")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_answers(ask, world, name):
    result, engine = ask(name)
    assert result.draft == "FBN1"
    assert result.lm_calls == len(engine.requests) <= program_class(name).max_lm_calls(world.settings)
    assert bool(result.evidence) == (name != "zero_shot")
    json.dumps(result.toDict())


# The bound


def never_done():
    """A model whose sub-questions are new each time."""
    number = iter(range(10_000))

    def new(request):
        return json.dumps({"questions": [f"What is thing {next(number)}?" for _ in range(10)]})

    return reply({"Ask only for what is still": new, "Break the question down": new})


ALWAYS_WRONG = {
    "unusable": lambda: lambda request: "{",
    "empty": lambda: lambda request: "",
    "refusing": lambda: reply({"Answer the question": "unknown"}),
    "never done": never_done,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", ALWAYS_WRONG)
@pytest.mark.parametrize("plan_by", ["model", "rules"])
@pytest.mark.parametrize("limits", [{"rounds": 1}, {"rounds": 3, "sub_questions": 2, "stop_early": True}])
def test_no_program_exceeds_its_bound(world, scripted_lm, name, kind, plan_by, limits):
    lm, engine = scripted_lm(ALWAYS_WRONG[kind]())
    bounded = world.settings.replace(plan_by=plan_by, **limits)
    with dspy.context(lm=lm):
        result = world.program(name, plan_by=plan_by, **limits)(question=CHAIN)
    assert result.lm_calls == len(engine.requests) <= program_class(name).max_lm_calls(bounded)


@pytest.mark.parametrize("name", ["hybrid_ir", "imedrag", "decomp_rag", "hipporag", "medgraphrag"])
def test_the_bound_is_reached(world, scripted_lm, name):
    lm, engine = scripted_lm(never_done())
    with dspy.context(lm=lm):
        world.program(name, rounds=4, sub_questions=3)(question=CHAIN)
    bound = program_class(name).max_lm_calls(world.settings.replace(rounds=4, sub_questions=3))
    assert len(engine.requests) == bound


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    replies=st.lists(st.sampled_from([*REPLIES.values(), "", "{", "unknown", '"yes"']), min_size=1, max_size=30),
    name=st.sampled_from(sorted({*PROGRAMS} - {"gfm_rag"})),
    rounds=st.integers(1, 4),
    most=st.integers(1, 4),
    rules=st.booleans(),
)
def test_no_model_exceeds_the_bound(world, scripted_lm, replies, name, rounds, most, rules):
    limits = {"rounds": rounds, "sub_questions": most, "plan_by": "rules" if rules else "model"}
    queue = iter(replies * 100)
    lm, engine = scripted_lm(lambda request: next(queue))
    with dspy.context(lm=lm):
        result = world.program(name, **limits)(question=CHAIN)
    bound = program_class(name).max_lm_calls(world.settings.replace(**limits))
    assert len(engine.requests) == result.lm_calls <= bound


# What they search


def test_zero_shot_reads_nothing(ask):
    result, engine = ask("zero_shot")
    (request,) = engine.requests
    assert "vidence:" not in prompt_of(request) and "from what you know" in task_of(request)
    assert (result.evidence, result.answer, result.hops) == ((), "FBN1", ())


def test_medcpt_reads_the_one_nearest_passage(ask, world):
    result, _ = ask("medcpt")
    assert ids(result.evidence) == ids(world.index.search(world.encoder.embed([QUESTION]), 1)[0])


class Longest:
    """A reranker that knows only how long a passage is."""

    def rank(self, query, passages):
        return by_score(passages, [len(p.text) for p in passages])


def rankings(world, question, k=5):
    dense = world.index.search(world.encoder.embed([question]), k)[0]
    words = LexicalIndex(world.index.all_passages(), with_title=True).search([question], k)[0]
    return dense, words


def test_medrag_fuses_bm25_dense_search_and_the_rerankers_order(world):
    settings = program_class("medrag").adjusted(world.settings)
    made = build("medrag", Retriever(world.index, world.encoder, Longest(), settings), settings)
    dense, words = rankings(world, QUESTION)
    union = {p.id: p for p in [*dense, *words]}
    longest = sorted(union.values(), key=lambda p: -len(p.text))
    assert len({tuple(ids(r)) for r in (dense, words, longest)}) == 3
    found = made.retriever.search([QUESTION], 5)
    wanted = reciprocal_rank_fusion([dense, words, longest])[:5]
    assert [p.score for p in found] == pytest.approx([p.score for p in wanted])
    assert ids(found)[0] == ids(wanted)[0]


def test_decomp_rag_weighs_bm25_and_dense_search_and_asks_four_at_once(ask, world):
    retriever = world.program("decomp_rag").retriever
    dense, words = rankings(world, QUESTION)
    assert retriever.search([QUESTION], 5) == reciprocal_rank_fusion([dense, words], weights=[0.6, 0.4])[:5]
    result, engine = ask("decomp_rag")
    assert [h.question for h in result.hops] == SUB_QUESTIONS[:4]
    assert len(engine.requests) == 1 + 4 + 1
    assert f"{SUB_QUESTIONS[3]} FBN1" in prompt_of(engine.requests[-1])


def test_imedrag_asks_follow_ups_over_rounds(ask):
    result, engine = ask("imedrag", rounds=3, sub_questions=2)
    assert [h.question for h in result.hops] == [*SUB_QUESTIONS[:2], "Where does FBN1 lie?"]
    assert sum("still missing" in task_of(r) for r in engine.requests) == 2
    assert not result.searches and result.trace.searches == ()


@pytest.mark.parametrize("name", ["hipporag", "gfm_rag"])
def test_graph_baselines_search_the_graph_alone_in_its_own_order(ask, world, name):
    result, engine = ask(name, {"Copy from the question the names": '{"entities": ["TNF alpha"]}'})
    settings = world.settings.replace(retriever="graph", graph_scorer="gfm" if name == "gfm_rag" else "pagerank")
    found = world.retriever(settings).find([QUESTION], 4, entities=["TNF alpha"])
    assert ids(reversed(result.evidence)) == ids(found.passages)
    (entity,) = found.entities
    assert entity in {"TNF-α", "TNF alpha"}
    assert result.searches == (SearchRecord((QUESTION,), (entity,), True, tuple(ids(found.passages))),)
    assert len(engine.requests) == 2


@pytest.mark.parametrize("name", ["hipporag", "medgraphrag"])
def test_by_rules_the_graphs_names_are_looked_for(ask, name):
    result, engine = ask(name, plan_by="rules")
    assert not any("names of diseases" in task_of(r) for r in engine.requests)
    assert result.evidence


def test_single_pass_and_medhopper_can_search_the_graph_too(ask):
    for name in ("single_pass", "medhopper"):
        result, _ = ask(name, retriever="hybrid")
        assert result.searches[0].graph_used
        assert ask(name, retriever="dense")[0].searches == ()


# MedGraphRAG


def test_summaries_name_the_specific_entities_and_the_facts_between_them(world):
    made = summaries(world.graph)
    assert "refs" not in made  # it has no entities
    entities, _, facts = made["fbn1"].partition(": ")
    assert "FBN1 (gene)" in entities and "Marfan syndrome (disease)" in entities
    assert "FBN1 causes Marfan syndrome" in facts and "treats" not in facts
    assert entities.index("chromosome 15") < entities.index("Marfan syndrome")  # which other documents name as well
    assert not any("synonym" in text for text in made.values())


def test_medgraphrag_goes_down_to_passages_and_back_up(ask, world):
    result, engine = ask("medgraphrag")
    names, first, last = (prompt_of(r) for r in engine.requests)
    assert "names of diseases" in names
    assert "in a few words" in first and "FBN1 (gene)" not in first
    assert "FBN1 causes Marfan syndrome" in last and f"{QUESTION} FBN1" in last
    assert [(h.question, h.answer) for h in result.hops] == [(QUESTION, "FBN1")]
    made = summaries(world.graph)
    assert {p.doc_id for p in result.evidence} <= {*made}
    (search,) = result.searches
    assert (search.queries, search.entities, search.graph_used) == ((QUESTION,), ("Marfan syndrome",), True)
    assert {*search.passage_ids} == {p.id for p in result.evidence}
    shown = as_text(QUESTION, result, trace=True)
    assert "Search 1  graph from Marfan syndrome; queries: " in shown and "[not checked]" in shown


def test_medgraphrag_falls_back_to_vectors_where_no_summary_fits(world):
    made = world.program("medgraphrag")
    found = made.summaries.find(["zzqx qqzz"], 3)
    assert ids(found.passages) == ids(world.index.search(world.encoder.embed(["zzqx qqzz"]), 3)[0])
    assert (found.entities, found.graph_used) == ((), False)
    assert made.summaries.find(["zzqx qqzz"], 3, entities=["FBN1", " "]).graph_used


@pytest.mark.parametrize("given", ["FBN1", [], [" "]])
def test_medgraphrag_refuses_what_no_retriever_takes(world, given):
    with pytest.raises(InputError, match=r"query strings|the one string"):
        world.program("medgraphrag").summaries.search(given, 3)


def test_medgraphrag_reads_the_nearest_passages_of_a_document_first(tmp_path):
    """Not those that stand first in its text."""
    filler = "Marfan syndrome [disease] affects aorta [anatomy]. " * 12
    asked = "Losartan [drug] treats hypertension [disease]."
    documents = [Document("long", "Marfan syndrome", "", f"{filler}\n{asked}")]
    world = HybridWorld(tmp_path, documents, chunk_size=128)
    try:
        query = "Losartan treats hypertension"
        chunks = world.index.passages("long")
        assert len(chunks) > 4 and "Losartan" in chunks[-1].text
        summaries = world.program("medgraphrag", candidates=2).summaries
        found = summaries.search([query], 2)
        nearest = world.index.search(world.encoder.embed([query]), 2)[0]
        assert ids(found) == ids(nearest) and found[0].id == chunks[-1].id
        assert [p.score for p in found] == pytest.approx([p.score for p in nearest])
    finally:
        world.close()


def test_a_document_without_a_summary_adds_nothing_to_what_is_known(world):
    made, run = world.program("medgraphrag"), Run("Q?", world.settings, blocking=True)
    run.shown = [p for doc_id in ("refs", "fbn1") for p in world.index.passages(doc_id)]
    assert made.summaries.summary("refs") == ""
    assert made._known(run) == [made.summaries.summary("fbn1")]


def test_summaries_are_made_once_by_however_many_threads(world, monkeypatch):
    made, counted = world.program("medgraphrag"), []

    def count(graph):
        counted.append(graph)
        time.sleep(0.05)
        return summaries(graph)

    monkeypatch.setattr(medgraphrag, "summaries", count)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: made.summaries.search([QUESTION], 3), range(4)))
    assert len(counted) == 1 and all(each == found[0] for each in found)


@pytest.mark.parametrize(("answer", "known"), [("unknown", False), ("", False), ("FBN1", True)])
def test_a_first_answer_that_says_nothing_is_not_refined(ask, answer, known):
    result, engine = ask("medgraphrag", {"Answer the question from the evidence in a few": answer})
    assert (f"{QUESTION} FBN1" in prompt_of(engine.requests[-1])) == known
    assert result.hops[0].resolved == known
    assert bool(result.trace.failures) == (answer == "")


# What they need


@pytest.mark.parametrize("name", GRAPH_PROGRAMS)
def test_a_graph_program_is_not_made_without_a_graph(world, name):
    wanted = "graph" if name in {"hipporag", "gfm_rag"} else "hybrid"
    with pytest.raises(SettingsError, match=f"retriever is '{wanted}', but the Retriever given has no graph") as caught:
        build(name, world.dense(), world.settings.replace(retriever=None))
    assert "medhop graph build" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "opened", "wanted"),
    [
        ("graph_scorer", "pagerank", "gfm"),
        ("damping", 0.5, 0.7),
        ("link_floor", 0.8, 0.9),
        ("top_entities", 20, 5),
        ("candidates", 5, 6),
    ],
)
def test_a_retriever_opened_with_other_settings_is_refused(world, name, opened, wanted):
    with pytest.raises(SettingsError, match=f"{name} is {wanted!r}, the retriever was opened with {opened!r}"):
        build("hybrid_ir", world.retriever(), world.settings.replace(**{name: wanted}))
    build("single_pass", world.retriever(), world.settings.replace(retriever="dense", **{name: wanted}))


def test_gfm_rag_tells_that_its_weights_are_absent(world):
    settings = program_class("gfm_rag").adjusted(world.settings)
    with pytest.raises(ArtefactError) as caught:
        GraphRetriever.open(world.dense(), world.encoder, settings)
    assert "medhop graph train" in caught.value.hint


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_and_restored(world, tmp_path, name):
    world.program(name).save(tmp_path / "p.json")
    world.program(name).load(tmp_path / "p.json")
    about = json.loads((tmp_path / "p.json").read_text())["medhop"]
    assert about["index_digest"] == world.program(name).retriever.digest
