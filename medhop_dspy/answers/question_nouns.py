"""Word lists for reading the noun phrase that a question asks for."""

from __future__ import annotations

from typing import Final

from medhop_dspy.answers.textnorm import word_set
from medhop_dspy.answers.types import AnswerType

# Heads of noun phrases, the longest match wins; a plural is listed where it is in use.
_HEAD_LINES: Final[dict[AnswerType, str]] = {
    AnswerType.CHROMOSOME: "chromosome|chromosomes|autosome|autosomes|sex chromosome|chromosome pair",
    AnswerType.GENE: ("gene|genes|oncogene|oncogenes|gene symbol|suppressor gene|proto oncogene|candidate gene"),
    AnswerType.GENE_MUTATION: (
        "gene mutation|gene mutations|mutation|mutations|gene variant|gene variants|genetic variant|"
        "genetic mutation|genetic mutations|point mutation|polymorphism|gene defect|genetic variation"
    ),
    AnswerType.PROTEIN: (
        "protein|proteins|glycoprotein|polypeptide|peptide|receptor|transporter|transcription factor|"
        "immunoglobulin|cytokine|structural protein|tumor suppressor protein"
    ),
    AnswerType.ENZYME: "enzyme|enzymes",
    AnswerType.DISEASE_OR_SYNDROME: (
        "disease|diseases|syndrome|syndromes|disorder|disorders|condition|conditions|illness|cancer|cancers|"
        "tumor|tumors|tumour|neoplasm|malignancy|infection|infections|birth defect|heart defect|lymphoma|"
        "leukemia|heart arrhythmia|arrhythmia|dystrophy|anomaly|congenital anomaly|malformation|epilepsy|"
        "dwarfism|dementia|diabetes|diagnosis|stroke|injury"
    ),
    AnswerType.SYMPTOM: (
        "symptom|symptoms|neurological sign|clinical sign|physical sign|clinical feature|clinical symptom"
    ),
    AnswerType.MEDICATION: (
        "medication|medications|drug|drugs|antibiotic|antibiotics|vaccine|medicine|medicines|diuretic|"
        "antidepressant|anticonvulsant|antifungal|antiviral|corticosteroid|antihistamine|immunosuppressant|"
        "chemotherapy drug|chelating agent|anticoagulant|analgesic|nsaid|pharmaceutical"
    ),
    AnswerType.PROCEDURE: (
        "procedure|procedures|surgery|diagnostic test|test|diagnostic technique|imaging technique|"
        "imaging modality|imaging test|surgical technique|surgical treatment|operation|surgical intervention|"
        "diagnostic method|imaging study|blood test|genetic test|biopsy|screening test|surgical procedure"
    ),
    AnswerType.ORGANISM: (
        "organism|organisms|virus|viruses|bacterium|bacteria|fungus|fungi|parasite|parasites|species|pathogen|"
        "pathogens|microorganism|genus|insect|animal|plant|worm|tick|mosquito|protozoan|infectious agent|"
        "vector"
    ),
    AnswerType.FLUID_TYPE: "fluid|body fluid|bodily fluid",
    AnswerType.PHASE: "phase|phases|stage|stages",
    AnswerType.NUMBER: (
        "percentage|number|year|length|prevalence|incidence|frequency|molecular weight|molecular mass|"
        "mortality rate|survival rate|ratio|temperature|dose|dosage|ph|risk percentage"
    ),
    AnswerType.LOCATION: (
        "country|countries|city|continent|chromosomal location|chromosomal region|chromosome region|"
        "cytogenetic location|cytogenetic band|chromosomal band|anatomical location|"
        "specific anatomical location|anatomical site|body part|part of the body|locus|gene locus|"
        "chromosome arm|chromosomal locus|island"
    ),
    AnswerType.MEDICAL_SPECIALIST: (
        "medical specialist|specialist|specialists|medical specialists|medical professional|"
        "healthcare professional|health professional|healthcare provider"
    ),
    AnswerType.FIELD_OF_BIOLOGY: (
        "specialty|speciality|field|branch of medicine|discipline|field of medicine|medical field|"
        "branch of biology|field of biology|medical discipline|medical branch"
    ),
    AnswerType.PRESS_OR_PUBLISHER: (
        "publisher|press|journal|publishing house|publishing company|scientific journal|medical journal|newspaper"
    ),
    AnswerType.PERSON: ("person|actor|actress|singer|author|president|celebrity|athlete|musician|politician|man|woman"),
    AnswerType.BONE: "bone|bones|long bone|long bones",
    AnswerType.CHEMICAL: (
        "chemical|vitamin|mineral|amino acid|amino acids|essential amino acid|chemical element|element|"
        "neurotransmitter|compound|chemical compound|nutrient|essential nutrient|substance|metabolite|metal|"
        "heavy metal|fatty acid|toxin|neurotoxin|sugar|trace element|monosaccharide|molecule"
    ),
}
HEADS: Final[dict[str, AnswerType]] = {
    head: answer_type for answer_type, heads in _HEAD_LINES.items() for head in heads.split("|")
}

# 'type of disease' asks for a disease.
TRANSPARENT: Final = word_set(
    "type types form forms kind kinds subtype subtypes class classes category categories group groups family families "
    "variant variety sort name species genus branch field"
)
OCCUPATIONS: Final = word_set(
    "physician physicians doctor doctors scientist scientists surgeon surgeons researcher researchers geneticist "
    "biologist chemist biochemist anatomist botanist microbiologist professor nurse dentist psychologist inventor "
    "pediatrician paediatrician explorer laureate engineer physicist mathematician pharmacist"
)
DETERMINERS: Final = word_set("the a an this that these those its their other specific particular following")

# Words that end a noun phrase.
NP_ENDS: Final = word_set(
    "of in on at for from with by to into within through during between among after before under without as than per "
    "that which who whom whose when where while if and or but because whether about against via upon across despite "
    "besides following including such like not also first commonly typically often primarily most more usually "
    "frequently generally sometimes specifically mainly is are was were be been being am do does did has have had can "
    "could will would shall should may might must the a an this these those its their his her they it he she there "
    "located found associated responsible linked known caused called mutated used involved considered identified "
    "described characterized characterised related implicated encoded encoding named discovered produced "
    "recommended classified deficient defective required needed present absent affected affecting causing leading "
    "resulting marked defined reported seen observed approved developed prescribed administered performed due similar "
    "likely able important essential critical crucial mentioned derived secreted released isolated published"
)
# Finite verbs that follow 'which gene' and the like directly.
VERBS: Final = word_set(
    "causes cause caused contains contain encodes encode carries carry harbors harbours harbor plays play results "
    "result leads lead affects affect produces produce regulates regulate binds bind makes make shows show acts "
    "act serves serve belongs belong occurs occur involves involve includes include codes code provides provide "
    "helps help inhibits inhibit triggers trigger increases increase decreases decrease reduces reduce prevents "
    "prevent treats treat spreads transmits transmit houses hosts holds has have had requires require impairs "
    "impair uses use mediates mediate controls control catalyzes catalyses catalyze converts convert breaks gives "
    "give presents present appears appear develops develop becomes become arises arise interacts interact forms "
    "comprises represents represent describes describe refers refer represented shares share differs differ "
    "resembles resemble mimics mimic predisposes predispose contributes contribute accounts account lies lie "
    "resides reside underlies disrupts disrupt influences influence stimulates stimulate transports transport "
    "blocks block induces induce supplies supply connects connect works work functions function spans span "
    "exhibits exhibit displays display manifests manifest features commonly discovered described published "
    "invented wrote won received named specializes specialises experiences undergoes enables allows specifies "
    "determines evaluates assesses measures confirms detects diagnoses targets"
)
