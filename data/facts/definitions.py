"""Facts of a term of the Human Disease Ontology, read out of its fields and the fixed phrases of its definition.

Only what stands in one of a few plain forms is understood; a definition that says it in another way raises
:class:`LeftOutError`. No sentence of a definition is handed on.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SEPARATOR = "|"  # between the values of one cell
PLACE = re.compile(r"chromosom|\b(?:[1-9]|1[0-9]|2[0-2]|X|Y)[pq](?:ter|cen|[0-9])", re.IGNORECASE)
# "has_material_basis_in heterozygous mutation in the ABC1 gene on chromosome 1q2" and its usual variants. A definition
# that says it in any other way is not understood, and its term is left out.
_STATE = r"(?:compound\ heterozygous|heterozygous|homozygous|hemizygous)"
_KIND = r"(?:germline|somatic|missense|activating|gain[- ]of[- ]function|loss[- ]of[- ]function)"
_SYMBOL = r"(?-i:[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)?|C[0-9X]{1,2}orf[0-9]+)"
BASIS = re.compile(
    rf"""has_material_basis_(?:in\ )?(?:by\ )?
    (?:(?:(?:autosomal|X-linked)\ )?(?:recessive|dominant|X-linked)\ inheritance\ of\ |dominantly\ inherited\ )?
    (?:an?\ )?(?:(?:autosomal|X-linked)\ (?:recessive|dominant)\ )?
    (?P<states>{_STATE}(?:(?:,\ or|,\ and|,|\ or|\ and)\ {_STATE})*\ )?
    (?P<kind>{_KIND}\ )?(?:genetic\ )?mutations?\ (?:in|of)\ (?:the\ )?
    (?:(?P<bare>{_SYMBOL})(?P<gene>\ gene)?
      |(?:[\w/ -]{{3,50}}?\ gene|gene\ (?:encoding|for)\ [\w/ -]{{3,50}}?|[\w/ -]{{3,50}}?)\ \(?(?P<named>{_SYMBOL})\)?
       (?:\ gene)?)
    (?=[\s.,;])(?:\ \([0-9]{{6}}\))?(?:,\ which\ encodes\ [\w/ -]{{3,60}},)?
    (?:,?\ (?:located\ )?(?:on|at)\ (?:chromosome\ )?(?P<place>(?:[0-9]{{1,2}}|X|Y)(?:[pq][0-9.pqter-]*)?))?
    (?=[\s.,;]|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_VAGUE_GENE = re.compile(r"\bgenes\b|\bany\b|\bone of\b|regulatory|mutation|mitochondrial gene")
# After the gene nothing may follow that could name a second cause.
_SECOND_CAUSE = re.compile(
    r"\bgenes?\b|chromosom|mutation|deletion|duplication|\blocus\b|\bloci\b|has_material|digenic"
)
GENUS = re.compile(r"An? (?P<genus>[^.;:]+?),? (?:that|which|characterized|has_\w+|located_in|with|where|in which)\b")
INHERITANCE = re.compile(r"\b(autosomal recessive|autosomal dominant|X-linked recessive|X-linked dominant|X-linked)\b")
CLAUSE = re.compile(r"characterized by (.+?)(?:,? (?:and |that |which |and that |and which )?has_\w+|\. |\.$)")
# Words that turn the meaning of a list round.
DOUBTFUL = re.compile(r"\b(?:without|absence|lack|no|not|normal|except|rather|unlike|either|distinct|risk)\b")
RELATIONS = {
    "has_symptom": "signs",
    "located_in": "sites",
    "transmitted_by": "vectors",
    "has_material_basis_in": "agents",
}
RELATION = re.compile(rf"\b({'|'.join(RELATIONS)}|results_in|derives_from)\b:? ?")
VALUE_END = re.compile(
    r"\.(?: |$)|;|,? (?:which|that|where|caused|resulting|characterized|along)\b|,? and is\b"
    r"| \((?![A-Z][a-z]+ [a-z]+\)$)"
)
WORDS = re.compile(r"[A-Za-z][a-z-]*(?: [a-z][a-z-]*){0,3}")
# A value with one of these words is more than the name of a thing.
UNFIT = re.compile(
    r"\b(?:and|or|by|to|may|is|are|usually|primarily|some|commonly|due|in|on|from|the|more|other|with)\b"
    r"|^(?:humans|nose|muscle|eyes|maculopapular|nodule|skin lesion|skin ulcer|pruritic plaque|muscle ache)$"
)
WAY = re.compile(r"[A-Za-z][A-Za-z-]*(?: [A-Za-z-]+){0,7}")
UNFIT_WAY = re.compile(r"\b(?:and|or|the|respectively|may|species)\b|^[A-Z][a-z]+$|^contact$|method$|contaminated$")
AGENT = re.compile(
    r"[A-Z][a-z]+ [a-z]+(?: subsp [a-z]+)?"
    r"|[A-Z][\w-]*(?: [\w-]+){0,4}?[ a-z]virus(?: type [0-9])?(?: \([A-Z][a-z]+ \w+\))?"
)

# Signs that are a list item of their own after "characterized by" are taken over; longer phrases never are.
SIGN_LIST = """
absent speech, alopecia, amelogenesis imperfecta, anemia, areflexia, arthralgia, ataxia, autistic features,
behavioral abnormalities, blepharophimosis, blindness, blue sclerae, bone fragility, brachycephaly,
brachydactyly, cardiomyopathy, cataracts, cerebellar ataxia, cerebellar atrophy, cerebellar hypoplasia, chorea,
cirrhosis, cleft lip, cleft palate, clinodactyly, cognitive impairment, congenital heart defects, corneal
clouding, craniosynostosis, cryptorchidism, deafness, dementia, developmental delay, developmental regression,
diabetes mellitus, diarrhea, dilated cardiomyopathy, dwarfism, dysarthria, dysmorphic facial features,
dysphagia, dystonia, ectrodactyly, epilepsy, exercise intolerance, facial dysmorphism, failure to thrive,
fatigue, feeding difficulties, fever, gait ataxia, global developmental delay, growth retardation, hearing loss,
hemolytic anemia, hepatomegaly, hepatosplenomegaly, hydrocephalus, hyperkeratosis, hyperreflexia, hypertelorism,
hypertension, hypertonia, hypertrichosis, hypertrophic cardiomyopathy, hypodontia, hypoglycemia, hypogonadism,
hyporeflexia, hypospadias, hypotonia, hypotrichosis, ichthyosis, immunodeficiency, infantile spasms,
intellectual disability, intrauterine growth retardation, jaundice, joint contractures, joint laxity, kyphosis,
lactic acidosis, low birth weight, lymphadenopathy, macrocephaly, metabolic acidosis, microcephaly, microcornea,
micrognathia, microphthalmia, midface hypoplasia, muscle weakness, myoclonus, myopathy, myopia, myotonia, nail
dystrophy, nephrocalcinosis, neutropenia, night blindness, nystagmus, obesity, optic atrophy, osteoporosis,
palmoplantar keratoderma, parkinsonism, peripheral neuropathy, photophobia, pigmentary retinopathy,
platyspondyly, polydactyly, progressive external ophthalmoplegia, progressive microcephaly, proteinuria, ptosis,
recurrent infections, respiratory failure, retinitis pigmentosa, scoliosis, seizures, sensorineural deafness,
sensorineural hearing loss, short limbs, short stature, skeletal dysplasia, sparse hair, spasticity, speech
delay, splenomegaly, strabismus, syndactyly, tall stature, thrombocytopenia, tremor, visual impairment, vomiting
"""
SIGNS = {sign: sign for sign in " ".join(SIGN_LIST.split()).split(", ")} | {
    "mental retardation": "intellectual disability",
    "intellectual deficit": "intellectual disability",
    "seizure": "seizures",
}


class LeftOutError(ValueError):
    """A term that gives no row; the message is the reason, the same for all terms of its kind."""


class Term(NamedTuple):
    """What is read of a term of the ontology; ``synonyms`` are the exact ones, ``acronyms`` those of them marked so."""

    id: str
    name: str
    definition: str
    synonyms: list[str]
    acronyms: list[str]
    other_names: list[str]
    parents: list[str]
    omim: list[str]
    orpha: list[str]


def read_terms(path: Path) -> Iterator[Term]:
    """Terms of an OBO file in its order, without obsolete ones."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if block.startswith("[Term]") and "\nis_obsolete: true" not in block:
            yield parse_term(block)


def parse_term(block: str) -> Term:
    """One stanza of an OBO file."""
    lines = [line.partition(": ")[::2] for line in block.splitlines()]
    fields = defaultdict(list)
    for key, value in lines:
        fields[key].append(value)
    quoted = [re.match(r'"((?:[^"\\]|\\.)*)" ([A-Z]+)( OMO:0003012)?', value) for value in fields["synonym"]]
    found = [(unescape(m[1]), m[2], bool(m[3])) for m in quoted if m]
    definition = re.match(r'"((?:[^"\\]|\\.)*)"', "".join(fields["def"]))
    return Term(
        id=fields["id"][0],
        name=unescape(fields["name"][0]),
        definition=" ".join(unescape(definition[1]).split()) if definition else "",
        synonyms=unique(text for text, scope, acronym in found if scope == "EXACT" and not acronym),
        acronyms=unique(text for text, scope, acronym in found if scope == "EXACT" and acronym),
        other_names=unique(text for text, scope, _ in found if scope != "EXACT"),
        parents=[value.partition(" ! ")[2] for value in fields["is_a"] if " ! " in value],
        omim=unique(re.findall(r"^xref: MIM:([0-9]{6})\b", block, re.MULTILINE)),
        orpha=unique(re.findall(r"^xref: ORDO:([0-9]+)\b", block, re.MULTILINE)),
    )


def unescape(text: str) -> str:
    """Text without OBO's backslashes."""
    return re.sub(r"\\(.)", r"\1", text).strip()


def unique(values: Iterable[str]) -> list[str]:
    """Values in their first order, each once, without empty ones."""
    return [value for value in dict.fromkeys(values) if value]


def stem(name: str) -> str:
    """An acronym without what tells subtypes apart, in lower case: "spg" of SPG5A; empty for any other name."""
    match = re.fullmatch(r"(?:AD|AR)?-?([A-Z]{2,6}?)(?:AD|AR|X)?-?[0-9]*[A-Za-z]?[0-9]?", name)
    return match[1].casefold() if match else ""


def initials(name: str) -> str:
    """First letters of the words of a name, in lower case; empty for fewer than three."""
    letters = "".join(word[0] for word in re.findall(r"[A-Za-z]{3,}", name)).casefold()
    return letters if len(letters) > 2 else ""


def classes_of(terms: Iterable[Term]) -> set[str]:
    """Names of classes, in lower case: every name and parent of a term, and what two definitions begin with."""
    terms = list(terms)
    found = {name.casefold() for term in terms for name in (term.name, *term.synonyms, *term.parents)}
    begins = Counter(match["genus"].casefold() for term in terms if (match := GENUS.match(term.definition)))
    return found | {genus for genus, count in begins.items() if count > 1}


def parent_of(term: Term, classes: set[str]) -> str:
    """The class of a disease: its parent in the ontology, else the class that its definition begins with.

    Raises:
        LeftOutError: there is none, or it is none of ``classes``.
    """
    match = GENUS.match(term.definition)
    genus = match["genus"] if match and match["genus"].casefold() in classes else ""
    parent = term.parents[0] if term.parents else genus
    if not parent or PLACE.search(parent) or parent.casefold() == term.name.casefold():
        raise LeftOutError("no class that is a known disease")
    return parent


def cause_of(definition: str) -> tuple[str, str, str, str]:
    """Symbol, states, kind of mutation and chromosome with arm (may be empty) of the one gene behind a disease.

    Raises:
        LeftOutError: the definition names no gene, several, or one in a way that is not understood.
    """
    match = BASIS.search(definition)
    if not match or not ((match["bare"] and (match["gene"] or match["place"])) or match["named"]):
        raise LeftOutError("cause not in one of the plain forms" if "has_material" in definition else "no cause stated")
    rest = definition[match.end() :]
    if _VAGUE_GENE.search(match[0].partition("mutation")[2]) or _SECOND_CAUSE.search(rest):
        raise LeftOutError("more than one cause")
    if definition.count("has_material") > 1:
        raise LeftOutError("more than one cause")
    states = re.sub("compound heterozygous", "compound", (match["states"] or "").casefold())
    found = re.findall(r"compound|heterozygous|homozygous|hemizygous", states)
    kind = (match["kind"] or "").strip().casefold().replace(" ", "-")
    place = re.match(r"(?:[0-9]{1,2}|X|Y)[pq]?", match["place"] or "")
    return match["bare"] or match["named"], SEPARATOR.join(unique(found)), kind, place[0] if place else ""


def inheritance_of(term: Term, parent: str) -> str:
    """The mode of inheritance, if the name, the class and the first sentence of the definition give just one."""
    first = re.split(r"\.(?: |$)", term.definition)[0]
    modes = set(INHERITANCE.findall(f"{term.name}; {parent}; {first}"))
    if len(modes) == 2 and "X-linked" in modes:
        modes = {mode for mode in modes if mode.startswith("X-linked ")}
    return modes.pop() if len(modes) == 1 else ""


def signs_of(definition: str) -> list[str]:
    """Common signs that are items of the list after "characterized by"; none where a word may turn their meaning."""
    match = CLAUSE.search(definition)
    if not match or DOUBTFUL.search(match[1]):
        return []
    items = re.split(r",(?: and| or)? | and | or ", match[1])
    return unique(SIGNS.get(item.strip(), "") for item in items)


def relations_of(definition: str) -> dict[str, list[str]]:
    """Values of the ontology's own relations that are plain names: ``signs``, ``sites``, ``vectors``, ``agents``."""
    found: dict[str, list[str]] = {key: [] for key in RELATIONS.values()}
    text = re.sub(r"\b(has|located|transmitted|results) _?(symptom|in|by)s?\b(?: of)?", r"\1_\2", definition)
    parts = RELATION.split(text)
    for relation, value in zip(parts[1::2], parts[2::2], strict=True):
        if relation in RELATIONS:
            found[RELATIONS[relation]] += values_of(RELATIONS[relation], VALUE_END.split(value)[0]) or [""]
    if "" in found["agents"]:  # where one agent is not understood, the others would read as the only ones
        found["agents"] = []
    return {key: unique(values) for key, values in found.items()}


def values_of(key: str, value: str) -> list[str]:
    """The names in a relation's value; none if any part of it is more than a name."""
    value = re.sub(r"(?:,|,? (?:and|or|and/or|and-or))+$", "", value.strip(" ,")).strip()
    if key == "agents":
        items = value.split(" or ")
        return items if all(map(AGENT.fullmatch, items)) else []
    if key == "vectors":
        return [value] if WAY.fullmatch(value) and not UNFIT_WAY.search(value) else []
    items = [item.removeprefix("the ") for item in re.split(r", (?:and/or |and |or )?", value)]
    return items if all(WORDS.fullmatch(item) and not UNFIT.search(item) for item in items) else []
