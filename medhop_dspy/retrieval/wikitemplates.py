"""What a reader sees of a wiki template, told from its name and arguments alone.

Templates cannot be expanded, since a dump of articles lacks their definitions. The rules, first match wins:

1. citations, maintenance marks, navigation and layout show nothing;
2. known inline templates (units, numbers, dates, languages, lists, symbols) show what they stand for;
3. a template of named fields, such as an infobox, becomes ``key: value; key: value`` on a line of its own;
4. an unknown template alone on its line is a hatnote or a navigation box and shows nothing, unless it is a
   series of numbers;
5. any other unknown template stands in a sentence and shows its unnamed arguments, so that no sentence loses a
   number or a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Arguments:
    """Rendered arguments of one template, in the order of the source, without surrounding white space."""

    positional: tuple[str, ...]
    named: dict[str, str]

    @property
    def first(self) -> str:
        """The first unnamed argument, or the empty string."""
        return self.positional[0] if self.positional else ""

    @property
    def filled(self) -> list[str]:
        """The unnamed arguments that are not blank."""
        return [value for value in self.positional if value]


_Show = Callable[[Arguments], str]

_SUPERSCRIPTS: Final = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_POWER: Final = re.compile(r"[+\-−]?\d+")
_NUMBER: Final = re.compile(r"[+\-−±]?[.,]?\d.*")
_PICTURE_KEY: Final = re.compile(r"\b(image|img|alt\b|\w*style\b|class\b|width\b|bgcolou?r\b|upright\b)", re.IGNORECASE)
_PICTURE: Final = re.compile(
    r".+\.(svg|png|jpe?g|gif|tiff?|webp|ogg|ogv|webm)|#[0-9a-f]{3,8}|\d*(x\d+)? ?px|https?://\S+", re.IGNORECASE
)
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_RANGES: Final = {
    "-": "–", "–": "–", "to": " to ", "to(-)": " to ", "and": " and ", "and(-)": " and ", "or": " or ", "by": " by ",
    "x": " × ", "×": " × ", "*": " × ", "+": " + ", "+/-": " ± ", "±": " ± ",
}  # fmt: skip
_SYMBOLS: Final = {
    "!": "|", "pipe": "|", "=": "=", "·": "·", "dot": "·", "middot": "·", "•": "•", "bull": "•", "'": "'", "'s": "'s",
    "nbsp": " ", "space": " ", "spaces": " ", "thinsp": " ", "hairsp": " ", "ndash": "–", "en dash": "–",
    "spaced ndash": " – ", "snd": " – ", "spnd": " – ", "mdash": "—", "em dash": "—", "mdashb": "—",
    "spaced mdash": " — ", "break": "\n", "br": "\n", "yes": "Yes", "no": "No", "n/a": "N/A", "unknown": "Unknown",
}  # fmt: skip
# Word before the colon, as in `{{formatnum:1500}}` -> what becomes of the rest.
_FUNCTIONS: Final[dict[str, Callable[[str], str]]] = {
    "formatnum": str.strip,
    "lc": str.lower,
    "uc": str.upper,
    "lcfirst": lambda text: text[:1].lower() + text[1:],
    "ucfirst": lambda text: text[:1].upper() + text[1:],
    **dict.fromkeys(("defaultsort", "displaytitle", "int", "ns", "urlencode", "fullurl"), lambda _: ""),
}

_DROPPED: Final = frozenset({
    "about", "anchor", "authority control", "chart", "clade", "clear", "coord", "css image crop", "dead link",
    "details", "dmoz", "double image", "efn", "external media", "flagicon", "further", "geographic location",
    "google books", "graph", "harvid", "inflation", "library resources box", "main", "main article",
    "multiple image", "multiple issues", "note", "notelist", "official website", "page needed", "ref", "ref label",
    "refbegin", "refend", "reflist", "refn", "respell", "rp", "see also", "short description",
    "sister project links", "spoken wikipedia", "subject bar", "tall image", "taxonbar", "tree chart",
    "unreliable source?", "wayback", "webarchive", "wide image", "wikipedia books", "youtube",
})  # fmt: skip
_DROPPED_PREFIXES: Final = (
    "citation", "cite ", "col-", "commons", "div col", "harv", "imdb", "ipa-", "ipac-", "navbox", "portal",
    "pp-", "s-", "sfn", "sidebar", "toc", "use ", "vcite", "wikibooks", "wikiquote", "wikisource", "wikiversity",
    "wiktionary",
)  # fmt: skip
_DATE_PREFIXES: Final = ("birth date", "birth-date", "death date", "death-date", "start date", "end date", "film date")


def template_text(name: str, arguments: Callable[[], Arguments], *, own_line: bool) -> str:
    """The text that stands for a template; a box comes with a line break on either side.

    Args:
        name: As written, or with the first argument for a parser function (``formatnum:1500``).
        arguments: Renders the arguments; not called for what shows nothing.
        own_line: Whether nothing else is on the template's first and last line.
    """
    name = " ".join(name.replace("_", " ").split())
    word, colon, rest = name.partition(":")
    name = name.lower().removeprefix("template:")
    if name.startswith("#") or name in _DROPPED or name.startswith(_DROPPED_PREFIXES):
        return ""
    if colon and word.lower() in _FUNCTIONS:
        return _FUNCTIONS[word.lower()](rest)
    args = arguments()
    if name in _SYMBOLS and not args.filled:
        return _SYMBOLS[name]
    show = _known(name)
    return show(args) if show else _unknown(name, args, own_line=own_line)


def power(text: str) -> str:
    """An exponent as superscript characters (``10⁵``, not ``105``); anything but a whole number as it is."""
    return text.translate(_SUPERSCRIPTS) if _POWER.fullmatch(text) else text


def one_line(text: str) -> str:
    """Lines and list items joined by commas, for a field or a table cell."""
    lines = (line.strip().removeprefix("- ").strip(" ,;") for line in text.split("\n"))
    return ", ".join(line for line in lines if line)


def _known(name: str) -> _Show | None:
    if name.startswith(_DATE_PREFIXES):
        return _dates
    if name.startswith("lang-"):
        return _first
    return _INLINE.get(name)


def _unknown(name: str, args: Arguments, *, own_line: bool) -> str:
    fields = _fields(args.named)
    if fields and ("box" in name or (len(fields) > 1 and not args.filled)):
        return f"\n{'; '.join(fields)}\n"
    if own_line and sum(bool(_NUMBER.fullmatch(value)) for value in args.filled) < max(4, len(args.filled) / 2):
        return ""
    return " ".join(args.filled)


def _fields(named: dict[str, str]) -> list[str]:
    """``key: value`` of every field that is neither blank nor about a picture's looks."""
    shown = {key.replace("_", " "): one_line(value) for key, value in named.items()}
    if shown.keys() <= {"date", "reason"}:  # a maintenance mark
        return []
    return [
        f"{key}: {value}"
        for key, value in shown.items()
        if value and not _PICTURE_KEY.search(key) and not _PICTURE.fullmatch(value)
    ]


def _first(args: Arguments) -> str:
    return args.first


def _last(args: Arguments) -> str:
    return args.filled[-1] if args.filled else ""


def _comma_list(args: Arguments) -> str:
    return ", ".join(filter(None, map(one_line, args.positional)))


def _joined(separator: str, prefix: str = "") -> _Show:
    return lambda args: prefix + separator.join(args.filled)


def _quote(args: Arguments) -> str:
    return f"\n{args.named.get('text') or args.named.get('quote') or args.first}\n"


def _convert(args: Arguments) -> str:
    """The first measure of ``{{convert|5|to|10|km|mi}}`` or ``{{convert|6|ft|2|in|m}}``, without the conversion."""
    shown = ""
    values = args.filled
    for position, value in enumerate(values):
        if _NUMBER.fullmatch(value):
            shown += value
        elif value.lower() in _RANGES:
            shown += _RANGES[value.lower()]
        else:
            shown += f" {value}"
            following = values[position + 1 : position + 3]
            # A second number belongs to the measure if it has a unit; alone it is the precision of the result.
            if len(following) < 2 or not _NUMBER.fullmatch(following[0]) or _NUMBER.fullmatch(following[1]):
                break
            shown += " "
    return shown


def _val(args: Arguments) -> str:
    """``{{val|1.5|0.2|e=5|u=kg}}`` as ``1.5 ± 0.2 × 10⁵ kg``."""
    shown = " ± ".join(args.filled)
    if exponent := args.named.get("e"):
        shown += f" × 10{power(exponent)}"
    unit = args.named.get("u") or args.named.get("ul") or ""
    per = args.named.get("up") or args.named.get("upl") or ""
    return " ".join(filter(None, (args.named.get("p", ""), shown, unit + (f"/{per}" if per else ""))))


def _dates(args: Arguments) -> str:
    """``{{birth date|1950|4|2}}`` as ``2 April 1950``; dates that are text already stay as they are.

    Of ``{{death date and age|...}}``, which also holds the birth date, the date of death.
    """
    numbers = args.filled
    if not all(re.fullmatch(r"\d{1,4}", value) for value in numbers):
        return " ".join(numbers)
    return _date(numbers[:3])


def _date(parts: list[str]) -> str:
    year, month, day = (*parts, "", "")[:3]
    if not month or not 1 <= int(month) <= 12:
        return " ".join(parts)
    return f"{day.lstrip('0')} {_MONTHS[int(month) - 1]} {year}".strip()


def _as_of(args: Arguments) -> str:
    return f"as of {_dates(args)}" if args.named.get("lc") else f"As of {_dates(args)}"


def _fraction(args: Arguments) -> str:
    """``{{frac|1|2}}`` is 1/2, ``{{frac|3|1|2}}`` 3 1/2 and ``{{frac|2}}`` 1/2."""
    parts = args.filled
    if len(parts) == 1:
        return f"1/{parts[0]}"
    return " ".join((*parts[:-2], "/".join(parts[-2:])))


_INLINE: Final[dict[str, _Show]] = {
    **dict.fromkeys(("convert", "cvt"), _convert),
    **dict.fromkeys(("frac", "fraction", "sfrac"), _fraction),
    **dict.fromkeys(("chem", "chem2", "gaps"), _joined("")),
    **dict.fromkeys(
        ("angbr", "big", "center", "em", "keypress", "larger", "linktext", "longitem", "math", "mvar", "nobold", "nobr",
         "noitalic", "nowrap", "sc", "small", "smallcaps", "smaller", "strong", "sub", "var"), _joined(" ")),
    **dict.fromkeys(("circa", "c."), _joined("–", "c. ")),
    **dict.fromkeys(("quote", "blockquote", "cquote", "quotation"), _quote),
    **dict.fromkeys(("dts", "date", "dob"), _dates),
    **dict.fromkeys(
        ("abbr", "abbrv", "bartable", "flag", "ill", "interlanguage link", "ipa", "nts", "sic", "sort", "tooltip",
         "vanchor", "visible anchor"), _first),
    **dict.fromkeys(
        ("color", "font color", "lang", "native name", "resize", "script", "transl", "transliteration"), _last),
    **dict.fromkeys(
        ("bulleted list", "collapsible list", "flatlist", "hlist", "plainlist", "ubl", "unbulleted list", "vunblist"),
        _comma_list),
    "as of": _as_of,
    "val": _val,
    "ratio": _joined(":"),
    "e": lambda args: f" × 10{power(args.first)}",
    "10^": lambda args: f"10{power(args.first)}",
    "pow": lambda args: args.first + power(_last(args)),
    "sup": lambda args: power(args.first),
}  # fmt: skip
