"""Hybrid-IR's rounds on a scripted model, over a small index and the graph built on it."""

import asyncio
import json
import threading
import time
from dataclasses import replace

import dspy
import pytest
from dspy.lm15 import Message, Response, TextPart, Usage

from medhop_dspy.cli.show import as_text
from medhop_dspy.errors import ProgramError, ServerUnavailableError
from medhop_dspy.lm.failures import LMUnavailableError
from medhop_dspy.pipelines.concurrency import drive
from medhop_dspy.pipelines.hybrid_ir import HybridIR
from medhop_dspy.pipelines.registry import PROGRAMS
from medhop_dspy.pipelines.run import Run
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Trace
from tests.conftest import prompt_of, task_of
from tests.graph.hybrid_world import HybridWorld

QUESTION = "On which chromosome does the gene lie that causes Marfan syndrome?"
CAUSE, PLACE = "Which gene causes Marfan syndrome?", "Where does FBN1 lie?"
HOP = "What is the gene mutated in Marfan syndrome?"
CHAIN = "On which chromosome is the gene mutated in Marfan syndrome located?"
ANSWERS = {CAUSE: "FBN1", PLACE: "chromosome 15", HOP: "FBN1"}


def questions(*texts):
    return json.dumps({"questions": texts})


def asked_of(request):
    return next(x for x in prompt_of(request).splitlines() if x.startswith("Question: ")).removeprefix("Question: ")


STEPS = {
    "Break the question down": questions(CAUSE),
    "Ask only for what is still": questions(PLACE),
    "Copy from the question": '{"entities": ["Marfan syndrome"]}',
    "Answer the question from the evidence in a few": lambda request: ANSWERS.get(asked_of(request), "something"),
    "Answer the question from what is known": "Chromosome 15",
}


def reply(changes=None):
    replies = {**STEPS, **(changes or {})}

    def answer(request):
        value = replies[step_of(request)]
        return value(request) if callable(value) else value

    return answer


def step_of(request):
    task = task_of(request).removeprefix("Task: ")
    return next(start for start in STEPS if task.startswith(start))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = HybridWorld(tmp_path_factory.mktemp("hybrid"))
    yield made
    made.close()


@pytest.fixture
def ask(world, scripted_lm):
    """``ask(changes, question, **overrides)`` -> (prediction, engine)."""

    def run(changes=None, question=QUESTION, **overrides):
        lm, engine = scripted_lm(reply(changes))
        program = world.program("hybrid_ir", **{"rounds": 2, "sub_questions": 2, **overrides})
        with dspy.context(lm=lm):
            return program(question=question), engine

    return run


def prompts(engine, step):
    return [prompt_of(r) for r in engine.requests if step_of(r) == step]


def test_two_rounds_from_end_to_end(ask, world):
    result, engine = ask()
    assert result.answer == "Chromosome 15"
    assert (result.strategy, result.validated) == ("multihop", False)
    assert [(h.question, h.answer, h.attempts) for h in result.hops] == [
        (CAUSE, "FBN1", 1),
        (PLACE, "chromosome 15", 1),
    ]
    assert [s.graph_used for s in result.searches] == [True, True]
    assert result.searches[0].entities == ("Marfan syndrome",)
    assert {i for s in result.searches for i in s.passage_ids} == {p.id for p in result.evidence}
    assert result.trace.attempts[0].queries == (CAUSE, PLACE)
    assert result.lm_calls == len(engine.requests) == 7
    assert not result.trace.failures


def test_later_rounds_see_the_history_and_the_end_sees_it_all(ask):
    _, engine = ask()
    (later,) = prompts(engine, "Ask only for what is still")
    assert f"Known: {CAUSE} FBN1" in later
    assert "Evidence" not in later and "At most: 2" in later
    (last,) = prompts(engine, "Answer the question from what is known")
    assert f"Known: {CAUSE} FBN1; {PLACE} chromosome 15" in last
    assert last.startswith("Evidence:\n[1]")
    first = prompts(engine, "Break the question down")
    assert len(first) == 1 and "Known" not in first[0]


def test_the_model_names_the_entities_of_each_sub_question(ask):
    result, engine = ask({"Copy from the question": '{"entities": ["losartan"]}'})
    assert [asked_of(r) for r in engine.requests if step_of(r) == "Copy from the question"] == [CAUSE, PLACE]
    assert [[name.lower() for name in s.entities] for s in result.searches] == [["losartan"]] * 2


@pytest.mark.parametrize(
    "entities", ['{"entities": []}', "{", '{"entities": ["", " \\n"]}', '{"entities": ["\\u0000"]}']
)
def test_where_the_model_names_none_the_graphs_names_are_looked_for(ask, entities):
    result, _ = ask({"Copy from the question": entities})
    assert [s.entities for s in result.searches] == [("Marfan syndrome",), ("FBN1",)]
    assert len(result.trace.failures) == (2 if entities == "{" else 0)


def test_white_space_in_a_name_does_not_matter(ask):
    result, _ = ask({"Copy from the question": '{"entities": ["Marfan\\n  syndrome "]}'})
    assert [s.entities for s in result.searches] == [("Marfan syndrome",)] * 2


def test_a_sub_question_without_known_entities_is_served_by_vectors_and_says_so(ask):
    result, _ = ask({"Copy from the question": '{"entities": ["zzqx protein"]}'})
    assert [(s.graph_used, s.entities) for s in result.searches] == [(False, ())] * 2
    assert all(s.passage_ids for s in result.searches)
    record = json.loads(json.dumps(result.toDict()))
    assert [s["graph_used"] for s in record["trace"]["searches"]] == [False, False]
    assert Trace.from_dict(record["trace"]) == result.trace


def test_repeated_and_blank_sub_questions_are_dropped_and_no_more_asked_than_wanted(ask):
    more = questions(" ", CAUSE, f"  {CAUSE.upper()} ", "Which drug\ntreats\tit?", "What else?", "\ud800?")
    result, _ = ask({"Break the question down": more, "Ask only for what is still": more})
    assert [h.question for h in result.hops] == [CAUSE, "Which drug treats it?", "What else?"]


@pytest.mark.parametrize("first", [questions(), "{"])
def test_without_sub_questions_the_question_itself_is_asked(ask, first):
    result, _ = ask({"Break the question down": first, "Ask only for what is still": questions()})
    assert [h.question for h in result.hops] == [QUESTION]
    assert bool(result.trace.failures) == (first == "{")


@pytest.mark.parametrize(("stop_early", "planned"), [(True, 2), (False, 5)])
def test_a_round_that_brings_nothing_new_can_end_them(ask, stop_early, planned):
    _, engine = ask({"Ask only for what is still": questions(CAUSE)}, rounds=5, stop_early=stop_early)
    steps = [step_of(r) for r in engine.requests]
    assert sum(s.startswith(("Break", "Ask only")) for s in steps) == planned
    assert steps.count("Answer the question from the evidence in a few") == 1


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5])
def test_the_cost_is_linear_in_the_rounds(ask, rounds):
    new = iter(range(100))
    _, engine = ask({"Ask only for what is still": lambda r: questions(f"New {next(new)}?")}, rounds=rounds)
    assert len(engine.requests) == 3 * rounds + 1


@pytest.mark.parametrize(
    ("answer", "reason"), [("unknown", "not specific"), ("the gene", "not specific"), ("", "empty")]
)
def test_an_answer_that_says_nothing_is_no_fact(ask, answer, reason):
    result, engine = ask({"Answer the question from the evidence in a few": answer})
    assert not any(h.resolved for h in result.hops)
    assert all(reason in h.reason for h in result.hops)
    assert f"Known: {CAUSE} unknown" in prompts(engine, "Ask only for what is still")[0]
    assert "Known" not in prompts(engine, "Answer the question from what is known")[0]


# By rules


def test_rules_ask_a_chain_round_by_round(ask):
    answers = {HOP: "FBN1", "On which chromosome is FBN1 located?": "chromosome 15"}
    changes = {"Answer the question from the evidence in a few": lambda r: answers[asked_of(r)]}
    result, engine = ask(changes, CHAIN, plan_by="rules", rounds=3)
    assert {h.question: h.answer for h in result.hops} == answers
    assert {step_of(r) for r in engine.requests} == {*list(STEPS)[3:]}
    assert [s.entities for s in result.searches] == [("Marfan syndrome",), ("FBN1",)]


@pytest.mark.parametrize("rounds", [2, 3])
def test_rules_ask_the_question_itself_where_a_hop_fails(ask, rounds):
    changes = {"Answer the question from the evidence in a few": "unknown"}
    result, _ = ask(changes, CHAIN, plan_by="rules", rounds=rounds)
    assert [(h.question, h.attempts) for h in result.hops] == [(HOP, 1), (CHAIN, 1)]


def test_rules_ask_everything_at_once_in_the_only_round(ask):
    result, _ = ask(None, CHAIN, plan_by="rules", rounds=1)
    assert [(h.question, h.attempts) for h in result.hops] == [(HOP, 1), (CHAIN, 1)]


def test_rules_ask_a_simple_question_once(ask):
    result, engine = ask(None, "Which drug treats Marfan syndrome?", plan_by="rules", rounds=3)
    assert [h.question for h in result.hops] == ["Which drug treats Marfan syndrome?"]
    assert len(engine.requests) == 2


# Ablations


def test_retriever_dense_graph_and_hybrid_are_switches(ask):
    results = {mode: ask(retriever=mode) for mode in ("dense", "graph", "hybrid")}
    found = {mode: {p.id for p in result.evidence} for mode, (result, _) in results.items()}
    assert len({frozenset(ids) for ids in found.values()}) > 1
    dense, engine = results["dense"]
    assert dense.searches == () and not prompts(engine, "Copy from the question")
    settings = Settings(rounds=2, sub_questions=2)
    assert HybridIR.max_lm_calls(settings) == 2 * (1 + 4) + 1
    assert HybridIR.max_lm_calls(settings.replace(retriever="dense")) == 2 * (1 + 2) + 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_searches_what_it_is_made_for_unless_told_otherwise(world, name):
    made_for = {"hybrid_ir": "hybrid", "medgraphrag": "hybrid", "hipporag": "graph", "gfm_rag": "graph"}
    assert world.program(name, retriever=None).settings.retriever == made_for.get(name, "dense")


def test_a_trace_for_people_tells_what_the_graph_did(ask):
    linked, _ = ask({"Copy from the question": '{"entities": ["Marfan syndrome"]}'}, rounds=1)
    lines = as_text(QUESTION, linked, trace=True).splitlines()
    assert any(line.startswith("Search 1  graph from Marfan syndrome; queries: ") for line in lines)
    alone, _ = ask({"Copy from the question": '{"entities": ["zzqx"]}'}, rounds=1)
    assert "Search 1  vectors alone, no name of the graph; queries: " in as_text(QUESTION, alone, trace=True)
    assert "Search 1" not in as_text(QUESTION, linked, trace=False)


def test_one_opened_retriever_serves_every_mode(world):
    for mode in ("dense", "graph", "hybrid"):
        made = HybridIR(world.retriever(), world.settings.replace(retriever=mode))
        assert getattr(made.retriever, "mode", "dense") == mode


# At the same time

THREE = questions("What is A?", "What is B?", "What is C?")
ONE_ROUND = {"rounds": 1, "sub_questions": 3, "plan_by": "model", "retriever": "dense"}


def test_the_sub_questions_of_a_round_are_asked_together(ask):
    together = threading.Barrier(3, timeout=20)  # breaks, and fails the question, unless all three are under way

    def answer(request):
        together.wait()
        return "something"

    result, _ = ask(
        {"Break the question down": THREE, "Answer the question from the evidence in a few": answer},
        slots=3,
        **ONE_ROUND,
    )
    assert [h.answer for h in result.hops] == ["something"] * 3


def test_no_more_are_asked_at_once_than_there_are_slots(ask):
    lock, under_way, most = threading.Lock(), [0], [0]

    def answer(request):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.03)
        with lock:
            under_way[0] -= 1
        return "something"

    changes = {"Break the question down": THREE, "Answer the question from the evidence in a few": answer}
    ask(changes, slots=2, **ONE_ROUND)
    assert most[0] == 2
    most[0] = 0
    ask(changes, slots=1, **ONE_ROUND)
    assert most[0] == 1


class Slow:
    """An engine of both kinds whose replies take longer the earlier the sub-question, and which counts itself."""

    supports_response_schema = True
    supported_params = frozenset({"response_format", "stop", "max_tokens", "temperature", "seed"})

    def __init__(self, answer):
        self.seconds = {"What is A?": 0.09, "What is B?": 0.05, "What is C?": 0.01}
        self.answer, self.under_way, self.most = answer, 0, 0

    def complete(self, request):
        time.sleep(self.seconds.get(asked_of(request), 0))
        return self.response(request)

    def response(self, request):
        text = self.answer(request)
        if isinstance(text, Exception):
            raise text
        message = Message.assistant([TextPart(text)])
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=Usage())


class SlowAsync:
    def __init__(self, engine):
        self.engine = engine

    async def complete(self, request):
        self.engine.under_way += 1
        self.engine.most = max(self.engine.most, self.engine.under_way)
        await asyncio.sleep(self.engine.seconds.get(asked_of(request), 0))
        self.engine.under_way -= 1
        return self.engine.response(request)


def ask_slowly(world, answer, *, awaited, **overrides):
    engine = Slow(answer)
    lm = dspy.LM("slow/model", engine=engine, async_engine=SlowAsync(engine), cache=False, num_retries=0)
    program = world.program("hybrid_ir", **{**ONE_ROUND, **overrides})
    with dspy.context(lm=lm, trace=[]):
        result = asyncio.run(program.acall(question=QUESTION)) if awaited else program(question=QUESTION)
        trace = [(step[1].get("question"), step[2].toDict()) for step in dspy.settings.trace]
    return result, trace, engine


def plain(result):
    return replace(result.trace, seconds=0, calls=()), result.searches, result.evidence, result.answer


def test_what_is_recorded_depends_neither_on_who_ends_first_nor_on_how_it_is_called(world):
    broken = {"What is B?": "", "What is A?": "{", "What is C?": "gamma"}
    answer = reply({
        "Break the question down": THREE,
        "Answer the question from the evidence in a few": lambda r: broken[asked_of(r)],
        "Copy from the question": "{",
    })  # fmt: skip
    runs = [
        ask_slowly(world, answer, awaited=awaited, slots=slots, retriever="hybrid")
        for awaited in (False, True)
        for slots in (1, 3)
    ]
    assert all(plain(result) == plain(runs[0][0]) for result, _, _ in runs)
    assert all(trace == runs[0][1] for _, trace, _ in runs)
    result = runs[0][0]
    assert [h.answer for h in result.hops] == ["", "", "gamma"]
    assert [f.step for f in result.trace.failures] == ["entities", "sub_answer", "entities", "sub_answer", "entities"]
    assert [s.queries for s in result.searches] == [("What is A?",), ("What is B?",), ("What is C?",)]
    assert [engine.most for _, _, engine in runs[2:]] == [1, 3]


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("slots", [1, 3])
def test_a_server_that_is_down_ends_the_question(world, awaited, slots):
    answer = reply({
        "Break the question down": THREE,
        "Answer the question from the evidence in a few": lambda r: (
            LMUnavailableError("gone") if asked_of(r) == "What is B?" else "something"
        ),
    })  # fmt: skip
    with pytest.raises(ServerUnavailableError, match="gone"):
        ask_slowly(world, answer, awaited=awaited, slots=slots)


def test_branches_do_not_touch_the_run_before_they_are_joined(world):
    run = Run("Q?", world.settings.replace(slots=2), blocking=True)
    run.hops, run.asked = ["kept"], 3

    async def step(branch):
        branch.hops.append("own")
        branch.asked += 1
        return branch.hops, run.asked

    async def both():
        return await run.together([step, step])

    assert drive(both()) == [(["own"], 3)] * 2
    assert (run.hops, run.asked) == (["kept"], 5)
    assert drive(run.together([])) == []


def test_a_saved_program_comes_back_over_the_same_graph_only(world, tmp_path):
    made = world.program("hybrid_ir")
    made.answer_sub_question.demos = [{"question": "Q?", "evidence": [], "answer": "A"}]
    made.save(tmp_path / "p.json")
    again = world.program("hybrid_ir")
    again.load(tmp_path / "p.json")
    assert again.answer_sub_question.demos == made.answer_sub_question.demos
    other = HybridIR(world.retriever(damping=0.7), world.settings.replace(damping=0.7))
    with pytest.raises(ProgramError, match="index: saved for"):
        other.load(tmp_path / "p.json")
