"""Records of rare disorders and their genes, and how partial records become one."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from medhop_dspy.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(?:(?:https?://\S*/)?(?:orpha(?:net|code|number)?|ordo)[\s:_#-]*)?0*([1-9][0-9]*)(?:\.0+)?", re.I)
_CAUSAL_PREFIX: Final = "disease-causing "
_NOT_RARE: Final = "NON RARE IN EUROPE:"


@dataclass(frozen=True, slots=True)
class GeneLink:
    """A gene that Orphanet relates to a disorder.

    Attributes:
        symbol: HGNC symbol, such as ``FBN1``.
        name: Full name of the gene, or the empty string.
        synonyms: Former symbols and other names.
        locus: Cytogenetic band such as ``15q21.1``; several are joined by ``"; "``; empty if unknown.
        association: Orphanet's words for the relation, such as ``Candidate gene tested in``.
        status: ``Assessed``, ``Not yet assessed`` or empty.
    """

    symbol: str
    name: str = ""
    synonyms: tuple[str, ...] = ()
    locus: str = ""
    association: str = ""
    status: str = ""

    @property
    def causal(self) -> bool:
        """Whether a germline or somatic mutation of the gene causes the disorder, by loss or gain of function or both.

        Candidate genes, modifiers, susceptibility factors, biomarkers, fusion genes and genes with a role in the
        phenotype are not causal.
        """
        return self.association.casefold().startswith(_CAUSAL_PREFIX)


@dataclass(frozen=True, slots=True)
class Disorder:
    """A rare disorder of the Orphanet nomenclature.

    Attributes:
        code: ORPHAcode, digits only, such as ``558``.
        name: Preferred term; empty if only a gene table without names was read.
        synonyms: Other names, in the files' order.
        type: Typology, such as ``Disease``, or the empty string.
        genes: Related genes, in the files' order, once for each symbol and association.
        omim: Six-digit OMIM numbers of the disorder (not of its genes).
        url: Orphanet's page on it.

    Raises:
        InputError: if the code is not a number above 0 without leading zeros.
    """

    code: str
    name: str = ""
    synonyms: tuple[str, ...] = ()
    type: str = ""
    genes: tuple[GeneLink, ...] = ()
    omim: tuple[str, ...] = ()
    url: str = ""

    def __post_init__(self) -> None:
        if code_of(self.code) != self.code or not self.code:
            raise InputError(f"ORPHAcode {self.code!r} is not a plain number", hint="Use digits only, such as '558'.")

    @property
    def causal_genes(self) -> tuple[GeneLink, ...]:
        """Causal genes, one link for each symbol: assessed ones first, otherwise in the files' order."""
        first: dict[str, GeneLink] = {}
        for gene in sorted(self.genes, key=lambda g: g.status.casefold() != "assessed"):
            if gene.causal:
                first.setdefault(gene.symbol, gene)
        return tuple(first.values())


def code_of(value: object) -> str:
    """The digits of an ORPHAcode written as 558, 558.0, '558', 'ORPHA:558', 'Orphanet_558'; else an empty string."""
    if isinstance(value, bool):
        return ""
    match = _CODE.fullmatch(str(value).strip())
    return match[1] if match else ""


def merge(records: Iterable[Disorder]) -> dict[str, Disorder]:
    """One record for each code, by ascending code; the first non-empty value of a field wins, lists are joined."""
    groups: dict[str, list[Disorder]] = defaultdict(list)
    for record in records:
        groups[record.code].append(record)
    return {code: _joined(groups[code]) for code in sorted(groups, key=int)}


def _joined(group: Sequence[Disorder]) -> Disorder:
    code = group[0].code
    names = [r.name.removeprefix(_NOT_RARE).strip() for r in group if r.name]
    name = names[0] if names else ""
    others = dict.fromkeys([*names[1:], *(s for r in group for s in r.synonyms)])
    return Disorder(
        code=code,
        name=name,
        synonyms=tuple(s for s in others if s != name),
        type=next((r.type for r in group if r.type), ""),
        genes=_joined_genes(g for r in group for g in r.genes),
        omim=tuple(dict.fromkeys(o for r in group for o in r.omim)),
        url=next((r.url for r in group if r.url), f"https://www.orpha.net/en/disease/detail/{code}"),
    )


def _joined_genes(links: Iterable[GeneLink]) -> tuple[GeneLink, ...]:
    known: dict[tuple[str, str], GeneLink] = {}
    for new in links:
        old = known.get((new.symbol, new.association), new)
        known[new.symbol, new.association] = replace(
            old,
            name=old.name or new.name,
            synonyms=old.synonyms or new.synonyms,
            locus=old.locus or new.locus,
            status=old.status or new.status,
        )
    return tuple(known.values())
