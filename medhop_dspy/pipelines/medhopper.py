"""MedHopper: route, resolve hops, draft, validate, repair; every loop a bounded ``for``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import dspy

from medhop_dspy import answers, signatures
from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.pipelines import queries
from medhop_dspy.pipelines.checks import Judges, hop_answer, validate
from medhop_dspy.pipelines.conclude import choose
from medhop_dspy.pipelines.decompose import decompose
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.pipelines.plan import copied_phrases, sanitised_hops
from medhop_dspy.pipelines.program import Program
from medhop_dspy.pipelines.reading import read, sizes
from medhop_dspy.signatures import HopType
from medhop_dspy.trace import Attempt, Hop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.knowledge.orphanet import Expansion, Orphanet
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings

# Answer types for which rare-disease names and genes are worth a look.
EXPANDED_TYPES: Final = frozenset(
    {
        AnswerType.DISEASE_OR_SYNDROME,
        AnswerType.GENE,
        AnswerType.GENE_MUTATION,
        AnswerType.PROTEIN,
        AnswerType.ENZYME,
    }
)
# Hop types that an encyclopaedia has pages about under their names.
TITLED_TYPES: Final = frozenset({HopType.DISEASE, HopType.SYNDROME})
_MODEL_CHECKS: Final = 3  # self-reference, type, grounding
_LONG_ANSWER: Final = 6  # words; longer ones are offered to the Canonicalizer


class MedHopper(Program):
    """The program of the paper. The names of its predictors are the keys of saved programs."""

    name = "medhopper"

    def __init__(
        self,
        retriever: Retriever | GraphRetriever,
        settings: Settings,
        orphanet: Orphanet | None = None,
        adapter: dspy.Adapter | None = None,
    ) -> None:
        super().__init__(retriever, settings, adapter)
        self.orphanet = orphanet
        self.route = dspy.Predict(signatures.Router)
        self.extract_constraints = dspy.Predict(signatures.ConstraintExtractor)
        self.plan_hops = dspy.Predict(signatures.HopPlanner)
        self.answer_hop = dspy.Predict(signatures.HopAnswer)
        self.gate_rare_disease = dspy.Predict(signatures.RareDiseaseGate)
        self.draft = dspy.Predict(signatures.AnswerDraft)
        self.judge_self_reference = dspy.Predict(signatures.SelfReferenceJudge)
        self.validate_type = dspy.Predict(signatures.TypeValidator)
        self.judge_grounding = dspy.Predict(signatures.GroundingJudge)
        self.repair_query = dspy.Predict(signatures.RepairQuery)
        self.canonicalize = dspy.Predict(signatures.Canonicalizer)

    @classmethod
    def max_lm_calls(cls, settings: Settings) -> int:
        """One to route, one to plan hops or extract constraints, one gate, the rounds, one to shorten the answer.

        In each of ``1 + max_repairs`` rounds a draft and at most three model checks; between rounds a repair. A round
        asks hops until one fails, so with H hops and R rounds H + R - 1 hops are asked at most. With readings, a hop
        may be asked again, and a draft costs one call for each of them and one where they find nothing.
        """
        rounds = 1 + (settings.max_repairs if settings.use_repair else 0)
        hops = settings.max_hops + rounds - 1 if settings.max_hops else 0
        gate = 1 if settings.use_expansion else 0
        checks = _MODEL_CHECKS if settings.use_model_judges else 0
        held = settings.readings
        return 2 + gate + hops * (1 + (held > 0)) + rounds * (1 + held + checks) + (rounds - 1) + 1

    async def _answer(self, run: Run) -> tuple[str, bool, str]:
        strategy, answer_type = await self._route(run)
        expansion = await self._expand(run, answer_type)
        await self._plan(run, strategy)
        if run.options:
            return await self._chosen(run, strategy, answer_type, expansion)
        repair, last = "", ("", "")
        for number in range(1 + (run.settings.max_repairs if run.settings.use_repair else 0)):
            if number:
                repair = await self._repair(run, strategy, answer_type)
            await self._resolve_hops(run, expansion, repair)
            searched = await self._search_for_draft(run, strategy, answer_type, expansion, repair)
            draft = await self._draft(run, answer_type)
            verdicts, quote = await validate(run, self._judges(), draft, answer_type)
            ids = tuple(p.id for p in run.shown)
            run.attempts.append(Attempt(number, tuple(searched), ids, draft, tuple(verdicts), repair))
            last = (draft, quote) if draft else last
            if run.attempts[-1].passed:
                return draft, True, quote
        return last[0], False, last[1]

    async def _chosen(
        self, run: Run, strategy: Strategy, answer_type: AnswerType, expansion: Expansion | None
    ) -> tuple[str, bool, str]:
        """One choice in place of drafts and repairs; there is nothing to check but the letter."""
        await self._resolve_hops(run, expansion, "")
        searched = await self._search_for_draft(run, strategy, answer_type, expansion, "")
        letter = await choose(run, self.choose, _known(run, run.hops))
        run.attempts.append(Attempt(0, tuple(searched), tuple(p.id for p in run.shown), letter, ()))
        return letter, False, ""

    def _judges(self) -> Judges:
        return Judges(self.judge_self_reference, self.validate_type, self.judge_grounding)

    async def _route(self, run: Run) -> tuple[Strategy, AnswerType]:
        """Strategy and answer type; the model is asked only for what Python does not know for sure."""
        override = answers.route_overrides(run.question)
        strategy = override.strategy
        answer_type = override.answer_type or answers.type_from_question(run.question)
        if run.settings.plan_by == "rules":
            planned = decompose(run.question, run.settings.max_hops)
            run.hops = [Hop(h.question, h.type.value) for h in planned.hops]
            run.reduced = planned.question if planned.hops else ""
            strategy = Strategy.MULTIHOP if planned.hops else (strategy or Strategy.DIRECT)
            answer_type = answer_type or AnswerType.OTHER
        elif strategy is None or answer_type is None:
            reply = await run.ask("route", self.route, question=run.question)
            strategy = strategy or (reply.strategy if reply else Strategy.DIRECT)
            answer_type = answer_type or (reply.answer_type if reply else AnswerType.OTHER)
        run.strategy, run.answer_type = strategy.value, answer_type.value
        return strategy, answer_type

    async def _expand(self, run: Run, answer_type: AnswerType) -> Expansion | None:
        """Rare-disease names and genes for a question that is about a rare disease."""
        if self.orphanet is None or not run.settings.use_expansion or answer_type not in EXPANDED_TYPES:
            return None
        expansion = self.orphanet.expand(run.question, run.settings)
        if not expansion.disorders:
            return None
        reply = await run.ask("gate", self.gate_rare_disease, question=run.question)
        if reply is None or reply.rare == "no":
            return None
        run.expansion = tuple(expansion.terms)
        return expansion

    async def _plan(self, run: Run, strategy: Strategy) -> None:
        """Hops or constraints by the model; rules have planned already."""
        if run.settings.plan_by == "rules":
            return
        if strategy is Strategy.INTERSECTION:
            reply = await run.ask("constraints", self.extract_constraints, question=run.question)
            run.constraints = copied_phrases(reply.constraints, run.question) if reply else ()
        elif strategy is Strategy.MULTIHOP and run.settings.max_hops:
            reply = await run.ask("plan", self.plan_hops, question=run.question)
            planned = sanitised_hops(reply.hops, run.question)[: run.settings.max_hops] if reply else []
            run.hops = [Hop(h.question, h.type.value) for h in planned]

    async def _resolve_hops(self, run: Run, expansion: Expansion | None, repair: str) -> None:
        """Ask the open hops in order, each once, until one fails."""
        for number, hop in enumerate(run.hops):
            if hop.resolved:
                continue
            run.hops[number] = await self._ask_hop(run, hop, expansion, repair)
            if not run.hops[number].resolved:
                break

    async def _ask_hop(self, run: Run, hop: Hop, expansion: Expansion | None, repair: str) -> Hop:
        question = queries.resolve_references(hop.question, run.hops)
        wanted = queries.hop_queries(question, queries.locked_entities(run.hops))
        shown = await run.search(
            self.retriever,
            [*wanted, repair] if repair else wanted,
            wanted[-1],
            k=run.settings.hop_evidence,
        )
        evidence = [line(p) for p in shown]
        hinted = expansion and run.settings.use_gene_hints and hop.type == HopType.GENE
        inputs = {
            "question": question,
            "answer_type": hop.type,
            "candidates_to_confirm": list(expansion.genes) if hinted and expansion else [],
        }
        reply = await run.ask("hop", self.answer_hop, evidence=evidence, **inputs)
        asked = replace(hop, attempts=hop.attempts + 1)
        if reply is None:
            return replace(asked, reason=run.failures[-1].reason)
        answer, reason = hop_answer(reply.answer, hop.type, question, evidence)
        if not answer and run.best and run.settings.titles_answer_hops and hop.type in TITLED_TYPES:
            answer, reason = hop_answer(run.best.title, hop.type, question, evidence)
        if not answer and run.settings.readings:
            kind = AnswerType.DISEASE_OR_SYNDROME if hop.type in TITLED_TYPES else AnswerType(hop.type)
            known = queries.locked_entities(run.hops)
            held = await read(run, "hop", self.answer_hop, [run.shown], kind, refused=known, **inputs)
            answer, reason = hop_answer(held, hop.type, question, evidence) if held else ("", reason)
        return replace(asked, answer=answer, locked=bool(answer) and hop.type != HopType.YES_NO, reason=reason)

    async def _search_for_draft(
        self, run: Run, strategy: Strategy, answer_type: AnswerType, expansion: Expansion | None, repair: str
    ) -> list[str]:
        """Put the draft's passages on show; returns the query strings."""
        locked = queries.locked_entities(run.hops)
        terms = list(expansion.terms) if expansion else []
        named = expansion.disorders[0].name if expansion else run.question
        searched = queries.draft_queries(
            run.asked_question(),
            strategy,
            answer_type,
            locked=locked,
            constraints=run.constraints,
            entity=locked[-1] if locked else named,
            repair_query=repair,
        )
        searched += terms[: run.settings.expansion_queries]
        focus = [run.asked_question(), *([] if run.reduced else locked[-2:]), *terms[: run.settings.expansion_rerank]]
        await run.search(self.retriever, searched, " ".join(focus))
        return searched

    async def _draft(self, run: Run, answer_type: AnswerType) -> str:
        asked = run.asked_question()
        # A question with the hops' answers put in says it all; told once more, a small model repeats them.
        told = [] if asked != run.question else run.hops
        inputs = {
            "question": asked,
            "known": _known(run, told),
            "constraints": [*run.constraints, *(f"not {attempt.draft}" for attempt in run.attempts if attempt.draft)],
            "rule": answers.ANSWER_TYPES[answer_type].format_rule,
            "answer_type": answer_type.value,
        }
        passages = run.shown
        if run.settings.readings:
            # A prompt has the best passage last; it is to be first where there is no reranker.
            ranked = await run.threaded(self.retriever.dense.by_best_sentence, asked, run.shown[::-1])
            readings = [ranked[:size] for size in sizes(run.settings.readings, len(ranked))]
            refused = [h.answer for h in run.hops if h.locked] + [a.draft for a in run.attempts if a.draft]
            held = await read(run, "draft", self.draft, readings, answer_type, refused=refused, **inputs)
            if held:
                return answers.shorten(held, answer_type)
            passages = readings[-1]
        reply = await run.ask("draft", self.draft, evidence=[line(p) for p in passages], **inputs)
        return answers.shorten(reply.answer, answer_type) if reply else ""

    async def _repair(self, run: Run, strategy: Strategy, answer_type: AnswerType) -> str:
        """A new query string that Python then holds to the rules of its answer type."""
        locked = queries.locked_entities(run.hops)
        entity = locked[-1] if locked else ""
        open_hop = next((h for h in run.hops if not h.resolved), None)
        next_question = queries.resolve_references(open_hop.question, run.hops) if open_hop else ""
        reply = await run.ask(
            "repair",
            self.repair_query,
            question=run.question,
            wanted=answer_type.value.replace("_", " "),
            strategy=strategy.value,
            next_question=next_question,
            known=entity,
            failed_checks=[f"{v.check}: {v.reason}" for v in run.attempts[-1].verdicts if not v.passed],
        )
        query = reply.query if reply else (next_question or run.question)
        return answers.enforce_repair_query(query, answer_type, entity)

    async def _finish(self, run: Run, draft: str) -> str:
        """``draft`` in canonical form; the model may only cut a long one down to some of its words."""
        answer_type = AnswerType(run.answer_type)
        if len(draft.split()) > _LONG_ANSWER and run.settings.use_model_judges:
            rule = answers.ANSWER_TYPES[answer_type].format_rule
            reply = await run.ask("canonicalize", self.canonicalize, question=run.question, answer=draft, rule=rule)
            short = answers.shorten(reply.short_answer, answer_type) if reply else ""
            if short and copied_phrases([short], draft) and answers.check_format(short, answer_type).ok is not False:
                draft = short
        return draft


def _known(run: Run, hops: Sequence[Hop]) -> list[str]:
    """The answered ones of ``hops``, questions and answers."""
    return [f"{queries.resolve_references(h.question, run.hops)} {h.answer}" for h in hops if h.resolved]
