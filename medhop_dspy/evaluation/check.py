"""Checks of a data set: a corpus folder and question files beside it, in the layout of ``data/``.

Each check yields what is wrong as :class:`Finding`; a data set without findings is fit to be evaluated on. Everything
here is plain text work; no model is loaded.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

from medhop_dspy.answers import AnswerType, Strategy, check_format, grounded, name_spelling, normalise, spelling
from medhop_dspy.evaluation.datasets import read_choices, read_gold
from medhop_dspy.evaluation.records import ChoiceQuestion, GoldQuestion
from medhop_dspy.retrieval.corpus import Document, ReadReport, read_corpus

MAX_GOLD_WORDS: Final = 6
MAX_SHARED_WORDS: Final = 0.75  # Jaccard overlap of words from which two questions count as the same one
_UNCLEAN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\ufeff\ufffd]|Ã[^\\sA-Za-z]|â€")


class Finding(NamedTuple):
    """Something wrong: where, and what."""

    place: str
    reason: str


def check_data(folder: Path) -> list[Finding]:
    """All findings in ``folder``: ``corpus/`` and those of dev.jsonl, test.jsonl, demo.jsonl and mcq.jsonl that exist.

    Raises:
        CorpusError, InputError: a file cannot be read at all.
    """
    report = ReadReport()
    documents = list(read_corpus(folder / "corpus", report))
    findings = [Finding(f"{p.source} line {p.number}", p.reason) for p in report.problems]
    findings += check_documents(documents)
    sets = {
        name: read_gold(folder / f"{name}.jsonl")
        for name in ("dev", "test", "demo")
        if (folder / f"{name}.jsonl").exists()
    }
    texts = {document.title: f"{document.title}\n{document.text}" for document in documents}
    spelt = {title: spelling(text) for title, text in texts.items()}
    for name, questions in sets.items():
        findings += check_questions(name, questions, texts, spelt)
    findings += check_disjoint(sets)
    if (mcq := folder / "mcq.jsonl").exists():
        findings += check_choices(read_choices(mcq))
    return findings


def check_documents(documents: Sequence[Document]) -> Iterator[Finding]:
    """Titles that occur twice, without regard to case, and text that is not clean NFC."""
    titles = Counter(document.title.casefold() for document in documents)
    for document in documents:
        if titles[document.title.casefold()] > 1:
            yield Finding(document.id, f"the title {document.title!r} occurs {titles[document.title.casefold()]} times")
        if reason := _unclean(document.title + "\n" + document.text):
            yield Finding(document.id, reason)


def check_questions(
    name: str, questions: Sequence[GoldQuestion], texts: Mapping[str, str], spelt: Mapping[str, str]
) -> Iterator[Finding]:
    """Gold answers of a wrong form, missing or unhelpful articles, and chains that one article gives away.

    Args:
        name: Of the set, to name the place of a finding.
        questions: The set.
        texts: Title and text of every article, by its title.
        spelt: The :func:`~medhop_dspy.answers.spelling` of each of ``texts``.
    """
    for question in questions:
        place = f"{name} {question.id}"
        reasons = [*_form(question), *_support(question, texts)]
        if question.strategy is Strategy.MULTIHOP and question.answer_type is not AnswerType.YES_NO:
            wanted = name_spelling(question.subject)
            known = {title: texts[title] for title, run in spelt.items() if wanted in run}
            reasons += _shortcuts(question, known)
        for reason in reasons:
            yield Finding(place, reason)


def _form(question: GoldQuestion) -> Iterator[str]:
    if reason := _unclean(" ".join((question.text, *question.golds))):
        yield reason
    if question.answer_type is None or question.strategy is None or not question.hops:
        yield "answer_type, strategy and hops are needed"
        return
    for gold in question.golds:
        verdict = check_format(gold, question.answer_type)
        if verdict.ok is False:
            yield f"{gold!r} is no {question.answer_type}: {verdict.reason}"
    if len(question.answer.split()) > MAX_GOLD_WORDS:
        yield f"the answer has {len(question.answer.split())} words, more than {MAX_GOLD_WORDS}"
    if question.strategy is Strategy.MULTIHOP and question.hops < 2:
        yield "a multihop question has at least 2 hops"
    if question.strategy in {Strategy.DIRECT, Strategy.DEFINITION} and question.hops != 1:
        yield f"a {question.strategy} question has 1 hop, not {question.hops}"


def _support(question: GoldQuestion, texts: Mapping[str, str]) -> Iterator[str]:
    if not question.supporting_titles:
        yield "no supporting title"
    for title in question.supporting_titles:
        if title not in texts:
            yield f"there is no article {title!r}"
    articles = [texts[title] for title in question.supporting_titles if title in texts]
    if question.answer_type is AnswerType.YES_NO:
        return
    if not any(_verbatim(gold, article) for gold in question.golds for article in articles):
        yield f"no supporting article holds {question.answer!r} or a synonym verbatim"
    elif not any(grounded(gold, articles, question.answer_type) for gold in question.golds):
        yield f"no supporting article holds {question.answer!r} as a {question.answer_type}"


def _shortcuts(question: GoldQuestion, texts: Mapping[str, str]) -> Iterator[str]:
    """Why the question needs no second hop, if so; ``texts`` may leave out articles that lack its subject."""
    if not question.subject:
        yield "a multihop question needs a subject: the words of the question that lead to its first article"
        return
    if question.subject not in question.text:
        yield f"the subject {question.subject!r} does not stand in the question"
    if not grounded(question.subject, [texts.get(title, "") for title in question.supporting_titles[:1]]):
        yield f"the first supporting article does not hold the subject {question.subject!r}"
    for title, text in texts.items():
        if grounded(question.subject, [text]) and any(
            grounded(gold, [text], question.answer_type) for gold in question.golds
        ):
            yield f"the article {title!r} alone holds the subject {question.subject!r} and the answer"


def check_disjoint(sets: Mapping[str, Sequence[GoldQuestion]]) -> Iterator[Finding]:
    """Ids that occur twice, questions in nearly the same words, and answer articles of dev questions in test."""
    known = [(f"{name} {q.id}", q, frozenset(normalise(q.text).split())) for name, qs in sets.items() for q in qs]
    for (other_place, other, other_words), (place, question, words) in combinations(known, 2):
        if question.id == other.id:
            yield Finding(place, f"the same QIDX stands in {other_place.split()[0]}")
        if (shared := len(words & other_words) / (len(words | other_words) or 1)) > MAX_SHARED_WORDS:
            yield Finding(place, f"shares {shared:.0%} of its words with {other_place}")
    answers_of_test = {q.supporting_titles[-1]: q.id for q in sets.get("test", ()) if q.supporting_titles}
    for question in sets.get("dev", ()):
        title = question.supporting_titles[-1] if question.supporting_titles else ""
        if title in answers_of_test:
            place = f"dev {question.id}"
            yield Finding(place, f"its answer article {title!r} is that of test {answers_of_test[title]}")


def check_choices(questions: Sequence[ChoiceQuestion]) -> Iterator[Finding]:
    """Options that are too few or the same, unknown right options, and questions that occur twice."""
    texts = Counter(normalise(question.text) for question in questions)
    for question in questions:
        place = f"mcq {question.id}"
        if reason := _unclean(" ".join((question.text, *question.options.values()))):
            yield Finding(place, reason)
        different = len(set(map(normalise, question.options.values())))
        if different < 2:
            yield Finding(place, "fewer than two different options")
        elif different < len(question.options):
            yield Finding(place, "two options are the same")
        if not question.answer:
            yield Finding(place, "the right option is not told")
        if texts[normalise(question.text)] > 1:
            yield Finding(place, "the question occurs twice")


def _verbatim(answer: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None


def _unclean(text: str) -> str:
    """Why a text is not clean; empty if it is."""
    if not unicodedata.is_normalized("NFC", text):
        return "the text is not in Unicode's form NFC"
    found = _UNCLEAN.search(text)
    return f"{found[0]!r} in the text" if found else ""
