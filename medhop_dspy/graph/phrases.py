"""What the words between two names say: a relation, a conjunction, or nothing that relates them.

English word order only.
"""

from __future__ import annotations

import re
from typing import Final

from medhop_dspy.graph.names import kind

_BE: Final = r"is|are|was|were|be|been|being"
_AUXILIARY: Final = rf"{_BE}|has|have|had|can|could|may|might|will|must"
_ADVERB: Final = r"also|often|now|most often|most commonly|first|[a-z]{3,}ly"
_VERB: Final = (
    "(?:accumulat|activat|affect|aris|associat|attack|attach|belong|bind|block|bring|caus|characteri[sz]|cleav|clon|cod|"
    "compris|confirm|contain|control|convert|deriv|describ|destroy|detect|develop|diagnos|discover|encod|encounter|"
    "express|form|found|improv|includ|increas|infect|inherit|inhibit|interact|introduc|invad|invent|involv|isolat|lack|"
    "lead|link|liv|locat|lower|mak|manag|map|mapp|mediat|metaboli[sz]|mutat|occur|occurr|play|prevent|produc|protect|"
    "provok|rais|reduc|regulat|releas|reliev|remov|replac|resembl|result|secret|stimulat|stor|suppress|synthesi[sz]|"
    "target|transmit|transmitt|transport|treat|trigger|underlie|us)(?:e?s|e|e?d|ing)?"
    "|lies?|lay|bound|born|brought|bore|carry|carries|carried|catalyses|catalyzes|catalysed|catalyzed|find|finds|grows?|"
    "grown|identify|identifies|identified|known|knows|led|made|named|underlying|spread|spreads|share|shares|stands?|"
    "show|shows|shown|given|taken|seen"
)
_PREPOSITION: Final = "by|in|on|of|with|to|from|for|as|at|into|against|through|between|within|near"
_DETERMINERS: Final = frozenset({"the", "a", "an", "this", "that", "its", "their"})
# What stands behind these words is a noun or adjective, as in "the lower back".
_NO_VERB_BEHIND: Final = "".join(rf"(?<!\b{word} )" for word in ("the", "a", "an", "its", "their", "of", "in"))
_CHANGE: Final = "mutations?|variants?|deletions?|duplications?|defects?|changes?|loss|deficiency|expansions?|lack"
# "is an autosomal recessive disorder of": the noun tells the relation.
_NOUN: Final = (
    "agent|alias|analogue|antagonist|agonist|cause|component|complication|derivative|disease|disorder|drug|enzyme|form|"
    "gene|hormone|inhibitor|kind|ligand|member|precursor|product|receptor|relative|sign|subtype|substrate|symptom|"
    "synonym|treatment|type|vector"
)
_RELATION: Final = re.compile(
    rf"\b{_NO_VERB_BEHIND}(?:(?P<auxiliaries>(?:(?:{_AUXILIARY})\s+)*)(?:(?:{_ADVERB})\s+)*(?P<verb>{_VERB})(?:\s+(?:{_ADVERB}))?"
    rf"(?:\s+(?P<preposition>{_PREPOSITION}))?"
    rf"|(?:{_BE}|as)\s+(?:an?|the|one of the)\s+(?:[\w-]+\s+){{0,5}}?(?P<noun>{_NOUN})s?\s+(?P<of>{_PREPOSITION}))"
    r"(?![\w-])",
    re.IGNORECASE,
)
# "The cause is", "is the gene": the words before the verb, if any, tell the relation.
_IDENTITY: Final = re.compile(
    rf"\s*(?P<what>(?:[a-z-]+\s+){{0,5}}?(?:{_BE}))(?:\s+(?:called|chiefly|mainly|usually))?"
    r"(?:\s+(?:an?|the))?(?:\s+(?:gene|protein|enzyme|parasite|bacterium|virus))?\s*",
    re.IGNORECASE,
)
# "The cause lies in", "The cause is a variant in": what the subject has.
_ROLE: Final = re.compile(
    r"\s*(?:[a-z]+al\s+)?(?P<role>cause|agent|defect|origin|vector|treatment|complication|(?:long|short) arm)s?\s+",
    re.IGNORECASE,
)
_IS_CHANGE: Final = re.compile(rf"(?:{_BE})\s+(?:an?|the)\s[^,;()]*$", re.IGNORECASE)
_CHANGED: Final = re.compile(
    rf"\b(?P<change>{_CHANGE})\s+(?P<of>in|of)\s+(?:the\s+)?(?:[\w-]+\s+)?(?:genes?\s+)?$", re.IGNORECASE
)
_PLACE: Final = re.compile(r"(?:on|in|at) (?:the )?(?:(?:short|long) arm of(?: the)?|band)\s+", re.IGNORECASE)
_CHANGES: Final = re.compile(rf"\s*(?:genes?\s+)?(?P<change>{_CHANGE})\b", re.IGNORECASE)
_NEGATED: Final = re.compile(
    r"\b(?:not|no|never|without|unlike|neither|nor|cannot|rather than|instead of|except)\b|n['’]t\b", re.IGNORECASE
)
_CLAUSE: Final = re.compile(r"[;:]|\b(?:whereas|while|although|because|if|when)\b", re.IGNORECASE)
# Between a verb and its object: another phrase or clause begins here.
_BREAK: Final = re.compile(r"[,()]|\b(?:which|that|who|whose|where|but|than)\b", re.IGNORECASE)
_AND: Final = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
_PLACED: Final = re.compile(r"l(?:ies?|ay)|(?:locat|found|map).*", re.IGNORECASE)
_MAX_OBJECT: Final = 4  # words of "shares this position with"
_CONJUNCTION: Final = re.compile(r"\s*(?:,|/|,?\s*\b(?:and|or|as well as)\b)(?:\s+(?:the|by|in))?\s*", re.IGNORECASE)
_NEW_PREDICATE: Final = re.compile(rf"\s*,?\s*(?:and|but)\s+(?:{_AUXILIARY}|{_ADVERB}|{_VERB})\b", re.IGNORECASE)
_PRONOUN: Final = re.compile(r"(?:It|They|He|She)\b")
_DEFINITE: Final = re.compile(r"(?P<word>The|This|Its|Their|His|Her)(?=\s)(?P<rest>(?:\s+[\w-]+){1,3})")
_LONGEST_GAP: Final = 90  # characters between two mentions that are related


def relation(gap: str) -> str:
    """The relation that the words between two mentions state, in lower case; empty where they state none.

    It is the last verb phrase, with what is mutated or lost: " is caused by mutations in the " is
    ``is caused by mutations in``, " mutations cause " is ``mutations cause``. Auxiliaries of the passive are ``is``,
    all others are dropped. What the verb has besides the second mention belongs to it: " shares this position with " is
    ``shares position with``. A gap that is long, denies something, or crosses a clause or phrase states nothing.
    """
    if _says_nothing(gap):
        return ""
    found = list(_RELATION.finditer(gap))
    if not found:
        return _identity(gap)
    last, changed = found[-1], _CHANGED.search(gap, found[-1].start())
    if _BREAK.search(gap, last.end(), changed.start() if changed else len(gap)):
        return ""
    if changed:
        phrase, end = _verb_phrase(last), f"{changed['change']} {changed['of']}".lower()
        return phrase if phrase.endswith(end) else f"{phrase} {end}"
    phrase = "" if _AND.search(gap, last.end()) else _with_object(last, gap[last.end() :])
    changes = _CHANGES.match(gap)
    return f"{changes['change'].lower()} {phrase}" if changes and phrase else phrase


def role(gap: str) -> str:
    """What a gap behind "The" or "Its" says of the passage's subject; empty unless it names what the subject has.

    " cause lies in the gene " is ``cause lies in``, " responsible gene is " is ``responsible gene is``; " name stands
    for " is about the name.
    """
    if _says_nothing(gap):
        return ""
    if identity := _identity(gap):
        return identity
    if not (part := _ROLE.match(gap)):
        return ""
    rest, changed = gap[part.end() :], _CHANGED.search(gap)
    if changed and _IS_CHANGE.match(rest):
        said = f"is {changed['change']} {changed['of']}".lower()
    else:
        said = relation(rest) if _RELATION.match(rest) else ""
    return f"{part['role'].lower()} {said}" if said else ""


def _says_nothing(gap: str) -> bool:
    return len(gap) > _LONGEST_GAP or bool(_NEGATED.search(gap) or _CLAUSE.search(gap))


def _identity(gap: str) -> str:
    identity = _IDENTITY.fullmatch(gap)
    return " ".join(identity["what"].lower().split()).removeprefix("the ") if identity else ""


def _verb_phrase(match: re.Match[str]) -> str:
    if match["noun"]:
        return f"is {_article(match['noun'])} {match['noun']} {match['of']}".lower()
    return " ".join(
        filter(None, ("is" if match["auxiliaries"] and _passive(match) else "", match["verb"], match["preposition"]))
    ).lower()


def _passive(match: re.Match[str]) -> bool:
    """Whether it is "is caused" or, behind a noun, "caused"."""
    auxiliaries = (match["auxiliaries"] or "").split()
    be = any(re.fullmatch(_BE, word, re.IGNORECASE) for word in auxiliaries)
    return be or (not auxiliaries and match["verb"].lower().endswith("ed"))


def _with_object(match: re.Match[str], tail: str) -> str:
    """The verb phrase with the object and preposition of ``tail``, the words up to the second mention."""
    words = [word for word in tail.lower().split() if word not in _DETERMINERS]
    places = [n for n, word in enumerate(words) if re.fullmatch(_PREPOSITION, word)]
    own = match["preposition"] or match["of"]
    if not places or (own and {words[n] for n in places} == {"of"}):
        return _verb_phrase(match)  # "lies on the short arm of" places it as "lies on" does
    last = next(words[n] for n in reversed(places) if words[n] != "of" or not own)
    if own and (match["noun"] or _PLACED.fullmatch(match["verb"]) or (last == "by" and _passive(match))):
        return f"{_verb_phrase(match).removesuffix(own.lower())}{last}"  # "lies in a cluster on" is "lies on"
    if last == "by" and _passive(match):
        return f"{_verb_phrase(match)} by"
    words = words[: places[-1] + 1]
    return "" if own or len(words) > _MAX_OBJECT else f"{_verb_phrase(match)} {' '.join(words)}"


def _article(noun: str) -> str:
    return "an" if noun[0].lower() in "aei" else "a"


def before_mention(before: str) -> str:
    """What the words before the first mention of a sentence say of it and the passage's subject; empty for nothing.

    "Mutations in the" is ``mutations in``, "On the short arm of" is ``lies on``.
    """
    if _NEGATED.search(before):
        return ""
    if changed := _CHANGED.search(before):
        return f"{changed['change']} {changed['of']}".lower()
    return "lies on" if _PLACE.fullmatch(before) else ""


def is_conjunction(gap: str) -> bool:
    """Whether only a comma, a stroke, "and" or "or" stands between two mentions."""
    return _CONJUNCTION.fullmatch(gap) is not None


def continues(gap: str) -> bool:
    """Whether a gap begins a second predicate of the sentence's subject: ", and is located on"."""
    return _NEW_PREDICATE.match(gap) is not None


def implicit_subject(sentence: str, subject_kind: str) -> tuple[int, bool]:
    """Where the words end with which a sentence refers to a subject that it does not name, and whether to the whole.

    Args:
        sentence: As written.
        subject_kind: Kind of the subject, see :func:`~medhop_dspy.graph.names.kind`: "The disease" refers to one of
            kind ``disease``, and "The drug" or "The disease" before a verb also to one of unknown kind. Any other
            "The ..." or "Its ..." is about something that the subject has, as in "The cause is": then the first word
            ends the reference, and the second value is False (see :func:`role`).

    Returns:
        0 and False if the sentence does not begin so.
    """
    if pronoun := _PRONOUN.match(sentence):
        return pronoun.end(), True
    definite = _DEFINITE.match(sentence)
    if not definite:
        return 0, False
    if definite["word"] in {"The", "This"}:
        for word in re.finditer(r"\S+", definite["rest"]):
            end = definite.start("rest") + word.end()
            if subject_kind and kind(word[0]) == subject_kind:
                return end, True
            if not subject_kind and kind(word[0]) in {"disease", "chemical"} and _RELATION.match(sentence, end + 1):
                return end, True
    return definite.start("rest"), False
