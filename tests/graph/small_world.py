"""A vector index of a few sentences, and an extractor that reads them."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from medhop_dspy.errors import ReplyError
from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.retrieval.index import Index
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage
from tests.retrieval.corpora import write_corpus
from tests.retrieval.hashing_encoder import HashingEncoder

ATAXIA = "autosomal dominant cerebellar ataxia with retinal degeneration"
SENTENCES = {
    "fbn1": ("FBN1", "FBN1 [gene] causes Marfan syndrome [disease]. FBN1 [gene] lies on chromosome 15 [chromosome]."),
    "fbn2": ("FBN2", "FBN2 [gene] causes congenital contractural arachnodactyly [disease]."),
    "marfan": (
        "Marfan syndrome",
        "marfan syndrome [disease] affects aorta [anatomy]. Losartan [drug] treats Marfan syndrome.",
    ),
    "cat-gene": ("Catalase", "CAT [gene] encodes catalase. CAT [gene] lies on chromosome 11 [chromosome]."),
    "cat-pet": ("Cat", "CAT [animal] carries Toxoplasma gondii [parasite]."),
    "refs": ("References", "1984; 12: 3-9"),
    "ataxia": ("Ataxia", " ".join(f"{ATAXIA} type {n} [disease] affects retina." for n in (1, 3))),
    "synonym": ("MFS", "marfan syndrome disease [disease] affects aorta [anatomy]."),
    "tnf": ("TNF", "TNF-α [gene] binds TNFRSF1A. TNF alpha [gene] binds TNFRSF1B."),
    "again": ("Losartan", "losartan [drug] treats hypertension [disease]."),
}
_NAME = r"([\w(α-ω) -]+?)(?: \[(\w+)\])?"
_FACT = re.compile(rf"{_NAME} (causes|affects|treats|encodes|carries|binds|lies on) {_NAME}\.")


class SentenceExtractor:
    """Reads ``A [type] causes B [type].`` and its like. ``version`` is a prompt, ``before`` sees each passage first."""

    source = "model"

    def __init__(self, version: str = "1", before: Callable[[Passage], None] = lambda passage: None) -> None:
        self.digest = hashlib.sha256(version.encode()).hexdigest()
        self.read: list[str] = []
        self._before = before

    def extract(self, passage: Passage) -> Extraction:
        self._before(passage)
        self.read.append(passage.id)
        if "unreadable" in passage.text:
            raise ReplyError("the reply is no JSON")
        entities: dict[str, str] = {}
        triples = []
        for subject, subject_type, relation, thing, thing_type in _FACT.findall(passage.text):
            for name, kind in ((subject.strip(), subject_type), (thing, thing_type)):
                entities[name] = entities.get(name) or kind
            triples.append(Triple(subject.strip(), relation, thing))
        return Extraction(tuple(Entity(*each) for each in entities.items()), tuple(triples), "model")


def documents(*names: str) -> list[Document]:
    return [Document(name, SENTENCES[name][0], "", SENTENCES[name][1]) for name in names or SENTENCES]


def settings_at(home: Path) -> Settings:
    return Settings.load("local", home=home, chunk_size=512)


@contextmanager
def index_of(folder: Path, corpus: list[Document], **overrides) -> Iterator[Index]:
    """An index of one chunk a document, unless ``overrides`` say otherwise, in ``folder``."""
    folder.mkdir(exist_ok=True)
    file = write_corpus(folder / "corpus.jsonl", corpus)
    settings = settings_at(folder).replace(**overrides)
    index, _ = Index.build(str(folder / "index"), file, HashingEncoder(), settings)
    with index:
        yield index


def files_of(graph: Path) -> dict[str, bytes]:
    """Every file of a graph but the journal and the lock."""
    found = {str(f.relative_to(graph)): f.read_bytes() for f in graph.rglob("*") if f.is_file()}
    return {name: data for name, data in found.items() if not name.startswith(("extractions/", "writer.lock"))}


def edge_texts(graph) -> set[tuple[str, str, str]]:
    return {(graph.names[h], graph.relations[r], graph.names[t]) for h, r, t in graph.edges.tolist()}
