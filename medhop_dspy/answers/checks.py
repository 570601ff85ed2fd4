"""Format checks of short answers that need no model, one a type.

A check takes a non-empty answer and returns True for what is surely of the type, False for what surely is
not, and None for what Python cannot decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from medhop_dspy.answers import canonical
from medhop_dspy.answers.quantities import TIME_UNITS, parse_quantity
from medhop_dspy.answers.textnorm import fold, word_set

Check = Callable[[str], bool | None]

_DISEASE_AT_END = re.compile(
    r"\b(?:diseases?|syndromes?|disorders?|cancers?|tumou?rs?|infections?|dystrophy|deficiency|ana?emia)$"
)
_PROFESSION = re.compile(
    r"\b(?:\w{2,}ologists?|\w{3,}(?:iatrists?|iatricians?|icians?|opaths?|dontists?|therapists?|metrists?)|\w*surgeons?|"
    r"physicians?|dentists?|nurses?|internists?|geneticists?|doctors?|specialists?)\b"
)
_FIELD = re.compile(
    r"\b(?:\w{2,}ology|\w{3,}(?:iatrics?|iatry|nomy|omics|istry|genetics|dontics)|obstetrics|genetics|medicine|surgery|"
    r"physics)\b"
)

# 'Ring chromosome 18' and '13q deletion syndrome' are diseases.
_CHROMOSOME_ALONE = re.compile(
    r"(?:the )?(?:human )?(?:chromosomes?|chr)\s*\w{1,2}(?:\s*\(.*\)|\s(?:and|or)\s\w{1,2})?|(?:the )?[xy] chromosome"
)


def _is_no_name(answer: str) -> bool:
    """Whether the answer surely names no thing: a number or measure, a chromosome, yes or no."""
    quantity = parse_quantity(answer)
    return (
        (quantity is not None and not quantity.counted)
        or canonical.yes_no(answer) is not None
        or canonical.cytoband(answer) is not None
        or _CHROMOSOME_ALONE.fullmatch(fold(answer)) is not None
    )


def _named(yes: str, *, no: re.Pattern[str] | None = _DISEASE_AT_END, bare: str = "") -> Check:
    """A check by words: True where ``yes`` occurs, False for no name, for ``no`` and for the words in ``bare``."""
    pattern, refused = re.compile(rf"\b(?:{yes})\b"), word_set(bare)

    def check(answer: str) -> bool | None:
        folded = fold(canonical.text(answer) or "")
        if _is_no_name(answer) or folded in refused or (no and no.search(folded)):
            return False
        return True if pattern.search(folded) else None

    return check


# --- things that Python can parse


def chromosome(answer: str) -> bool | None:
    """A chromosome that exists, named in at most eight words."""
    return canonical.chromosome(answer) is not None and len(answer.split()) <= 8


_SYMBOL = re.compile(r"[A-Z][A-Z0-9]{1,9}(?:-[A-Z0-9]{1,4})?|C(?:[1-9]|1\d|2[0-2]|X)orf\d{1,4}|MT-[A-Z0-9]{2,5}")


def gene(answer: str) -> bool | None:
    """True for a symbol that has a digit or is called a gene; other names in capitals could be anything."""
    if _is_no_name(answer) or _DISEASE_AT_END.search(fold(answer)):
        return False
    if not _SYMBOL.fullmatch(canonical.gene(answer) or ""):
        return None
    return True if any(c.isdigit() for c in answer) or re.search(r"\bgene\b", answer, re.IGNORECASE) else None


_VARIANT = re.compile(
    r"\b(?:[cgmnp]\.\S|[A-Z]\d{2,4}(?:[A-Z*]|fs\S*|del\S*)?\b|(?:[A-Z][a-z]{2}\d+(?:[A-Z][a-z]{2}|fs|\*|del))|rs\d{3,}|"
    r"(?:Δ|delta ?)[A-Z]?\d+)"
)


def gene_mutation(answer: str) -> bool | None:
    """True for a variant in common notation and for a gene symbol."""
    return True if _VARIANT.search(answer) else gene(answer)


def number(answer: str) -> bool | None:
    """True for one number, range or ratio, alone, with a unit or before what it counts."""
    quantity = parse_quantity(answer)
    if quantity is None:
        return None if any(c.isdigit() for c in answer) and not gene(answer) else False
    last = quantity.counted.rpartition(" ")[2]
    return True if not last or last.endswith("s") or last in {"people", "men", "women", "children"} else None


_VAGUE_TIME = re.compile(r"\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|life\w*)\b")


def duration(answer: str) -> bool | None:
    """True for a number with a unit of time."""
    quantity = parse_quantity(answer)
    if quantity is None:
        return None if _VAGUE_TIME.search(fold(answer)) else False
    return quantity.unit in TIME_UNITS


def location(answer: str) -> bool | None:
    """True for a cytogenetic location; False for numbers and yes or no."""
    if canonical.cytoband(answer):
        return True
    return False if parse_quantity(answer) or canonical.yes_no(answer) else None


def specialist(answer: str) -> bool | None:
    """True for a profession; False for a field such as cardiology."""
    if _PROFESSION.search(fold(answer)):
        return True
    return False if _is_no_name(answer) or _FIELD.search(fold(answer)) else None


def field_of_biology(answer: str) -> bool | None:
    """True for a field, and for a profession that has a field: its canonical form is that field."""
    if _FIELD.search(fold(canonical.field(answer) or "")):
        return True
    return False if _is_no_name(answer) or _PROFESSION.search(fold(answer)) else None


def person(answer: str) -> bool | None:
    """False for anything with a digit or without a capital letter; no form is surely a person."""
    return None if any(c.isupper() for c in answer) and not any(c.isdigit() for c in answer) else False


def yes_no(answer: str) -> bool | None:
    """Exactly yes or exactly no, however it is put."""
    return canonical.yes_no(answer) is not None


def other(answer: str) -> bool | None:
    """Everything that holds a letter or digit fits."""
    return any(c.isalnum() for c in answer)


# --- things that are known by the words and endings of their names

_ASE = r"(?!\w*(?:disease|phase|crease|release|database|purchase)s?\b)\w{3,}ases?"
enzyme: Final = _named(_ASE)
protein: Final = _named(
    _ASE + r"|proteins?|receptors?|peptides?|collagens?|antibod(?:y|ies)|\w*globulins?|channels?|keratins?"
)
disease: Final = _named(
    r"diseases?|syndromes?|disorders?|deficiency|dystroph(?:y|ies)|cancers?|tumou?rs?|infections?|sclerosis|palsy|failure|"
    r"malformations?|anomaly|association|stroke|diabetes|epilepsy|autism|porphyria|ataxia|"
    r"\w{3,}(?:itis|omas?|osis|oses|a?emias?|path(?:y|ies)|plasias?|trophy|uria|rrhea|philia|phobia|plegia|sclerosis|"
    r"cephaly|dactyly|algia|ism)",
    no=None,
)
symptom: Final = _named(
    r"pain|fever|cough|nausea|vomiting|fatigue|headaches?|rash|itch\w*|swelling|seizures?|weakness|jaundice|dyspnea|"
    r"\w{3,}(?:algia|rrhea|uria|pnea|plegia|paresis)",
    no=None,
)
medication: Final = _named(
    r"\w{2,}(?:mab|nib|prils?|sartans?|statins?|olols?|azoles?|cillins?|mycins?|cyclines?|floxacin|vir|parin|gliptin|"
    r"gliflozin|triptans?|setron|dronate|caine|azepam|barbital|profen|oxetine|prazole|terol|solone|thiazide)|vaccines?|"
    r"antibiotics?|\w*steroids?|diuretics?|insulin|aspirin|inhibitors?|\w*agonists?|blockers?|"
    r"anti(?:depressant|psychotic|convulsant|histamine|fungal|viral)s?"
)
procedure: Final = _named(
    r"\w{3,}(?:ectomy|otomy|ostomy|oscopy|plasty|graphy|gram|centesis|desis|pexy|metry)|surgery|surgical|tests?|testing|"
    r"biopsy|mri|ct|scan|imaging|ultrasound|transplant(?:ation)?|dialysis|sequencing|examination|screening|therapy|repair|"
    r"resection|ablation|bypass|drainage|puncture|excision|injection|ventilation|sampling|fusion"
)
organism: Final = _named(
    r"\w*virus(?:es)?|\w+viridae|bacteri(?:um|a)|fung(?:us|i)|parasites?|species|genus|spp?|[a-z]\. [a-z]{4,}"
)
fluid: Final = _named(
    r"fluids?|blood|plasma|serum|urine|saliva|csf|lymph|bile|sweat|tears|milk|mucus|semen|sputum|pus|humou?r|endolymph|"
    r"perilymph|transudate|exudate|chyle|colostrum|sebum",
    bare="fluid fluids liquid",
)
phase: Final = _named(
    r"\w*phase|stage|period|\w*trimester|acute|subacute|chronic|latent|diastole|systole|puberty|infancy|childhood|"
    r"adolescence|gestation|embryogenesis|meiosis|mitosis|remission|prodrom\w*|g[012]|(?<!')(?:s|m)(?=$| phase)"
)
press: Final = _named(
    r"press|publish\w*|publications?|journal|verlag|books|elsevier|springer|wiley|saunders|mcgraw|lippincott|karger|thieme|"
    r"macmillan|penguin|blackwell|routledge|lancet|pearson|mosby|annals|archives",
    no=None,
)
bone: Final = _named(
    r"bones?|femur|tibia|fibula|patella|humerus|radius|ulna|scapula|clavicle|sternum|ribs?|pelvis|ilium|ischium|pubis|"
    r"sacrum|coccyx|vertebra\w*|atlas|axis|skull|cranium|mandible|maxilla|zygoma\w*|sphenoid|ethmoid|occipital|parietal|"
    r"temporal|frontal|vomer|hyoid|malleus|incus|stapes|\w*carpals?|\w*tarsals?|phalan(?:x|ges)|calcaneus|talus|navicular|"
    r"cuboid|cuneiform|scaphoid|lunate|triquetr\w+|pisiform|hamate|capitate|trapezi(?:um|oid)|lacrimal|palatine|nasal",
    bare="bone bones",
)
chemical: Final = _named(
    r"vitamins? \w+|\w+ acid|\w+ (?:chlor|fluor|brom|iod|ox|sulf)ide|calcium|iron|zinc|copper|sodium|potassium|"
    r"magnesium|iodine|selenium|glucose|cholesterol|biotin|folate|serotonin|dopamine|histamine"
)
