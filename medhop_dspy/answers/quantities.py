"""Numbers with ranges, bounds and units, read from short answers and from prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from medhop_dspy.answers.textnorm import fold, plain_digits, word_set

TIME_UNITS: Final = word_set("ms second minute hour day week month year decade century")

# Units by their key; a key is read as itself, too.
_ALIASES: Final[dict[str, str]] = {
    "%": "percent|per cent|percentage|pct",
    "ms": "msec|millisecond|milliseconds",
    "second": "seconds|sec|secs|s",
    "minute": "minutes|min|mins",
    "hour": "hours|hr|hrs|h",
    "day": "days|d",
    "week": "weeks|wk|wks",
    "month": "months|mo|mos",
    "year": "years|yr|yrs|years old|year old|years of age",
    "decade": "decades",
    "century": "centuries",
    "bp": "base pair|base pairs",
    "kb": "kbp|kbps|kilobase|kilobases|kilobase pairs",
    "mb": "mbp|mbps|megabase|megabases|megabase pairs",
    "kda": "kd|kilodalton|kilodaltons",
    "da": "dalton|daltons",
    "kg": "kilogram|kilograms",
    "g": "gram|grams",
    "mg": "milligram|milligrams",
    "μg": "ug|mcg|microgram|micrograms",
    "ng": "nanogram|nanograms",
    "l": "liter|liters|litre|litres",
    "dl": "deciliter|deciliters|decilitre|decilitres",
    "ml": "milliliter|milliliters|millilitre|millilitres|cc",
    "m": "meter|meters|metre|metres",
    "cm": "centimeter|centimeters|centimetre|centimetres",
    "mm": "millimeter|millimeters|millimetre|millimetres",
    "μm": "um|micrometer|micrometers|micrometre|micrometres|micron|microns",
    "nm": "nanometer|nanometers|nanometre|nanometres",
    "mmhg": "mm hg",
    "mol": "mole|moles",
    "mmol": "millimole|millimoles",
    "iu": "international unit|international units",
    "°c": "degrees celsius|degree celsius",
    "°f": "degrees fahrenheit|degree fahrenheit",
    "kcal": "kilocalorie|kilocalories",
    "fold": "times",
}
_UNITS: Final = {alias: key for key, names in _ALIASES.items() for alias in [key, *names.split("|")]}
_ANY_UNIT = "(?:" + "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True)) + r")(?![^\W\d_])"
_UNIT = re.compile(rf"(?P<space>[\s-]?)(?P<unit>{_ANY_UNIT})(?:(?:\s*/\s*|\s+per\s+)(?P<per>[^\W\d_]+))?")
_COUNTED = re.compile(r"\s+([^\W\d_][\w'-]*(?:\s+[^\W\d_][\w'-]*)?)")
_NOT_COUNTED: Final = word_set("of in for on at to from with that which and or are is was were per by than")

_BELOW_20: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS: Final = {
    **{w: i for i, w in enumerate(_BELOW_20.split())},
    **{w: 10 * i for i, w in enumerate(_TENS.split(), start=2)},
}
_SCALES: Final = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ONES = "(?:" + _BELOW_20.replace(" ", "|") + ")"
_SMALL = rf"(?:(?:{_TENS.replace(' ', '|')})(?:[\s-]{_ONES})?|{_ONES})"
_BELOW_1000 = rf"(?:{_SMALL}\s+hundred(?:\s+(?:and\s+)?{_SMALL})?|{_SMALL})"
_WORD_NUMBER = re.compile(
    rf"(?<![\w-]){_BELOW_1000}(?:\s+(?:thousand|million|billion|trillion)(?:\s+(?:and\s+)?{_BELOW_1000})?)*"
    # 'one-third' is a fraction, 'one-sided' an adjective, and 'one of' still a number.
    r"(?![\w]|[\s-]+(?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?)\b)"
)

# Digits and exponents are capped: a hostile text must not cost more than its length.
_DIGITS = r"\d{1,30}(?!\d)"
_NUMBER = (
    rf"-?(?:{_DIGITS}\s+{_DIGITS}/[1-9]\d{{0,9}}|{_DIGITS}/[1-9]\d{{0,9}}"
    rf"|{_DIGITS}(?:\.{_DIGITS})?(?:\s*[x×]\s*10\s*\^\s*-?\d{{1,2}}(?!\d)|\^-?\d{{1,2}}(?!\d)|e[+-]?\d{{1,2}}(?!\w))?)"
    r"(?:\s*(?:hundred|thousand|million|billion|trillion)\b)?"
)
_BOUNDS: Final = {
    "<": r"<|(?:less|fewer|lower|smaller|shorter|younger) than|under|below",
    ">": r">|(?:more|greater|higher|larger|longer|older) than|over|above|exceeding",
    ">=": r"≥|>=|at least|no (?:less|fewer) than|a minimum of|not less than",
    "<=": r"≤|<=|at most|up to|no more than|a maximum of|not more than",
}
_PREFIX = "|".join(f"(?P<b{i}>{p})" for i, p in enumerate(_BOUNDS.values()))
_QUANTITY = re.compile(
    rf"(?:(?:{_PREFIX})\s*)?(?P<between>between\s+)?(?<![\w.^])(?<![\w)]-)(?P<low>{_NUMBER})"
    rf"(?:(?:\s?(?P<mid>{_ANY_UNIT}))?(?:\s*-\s*|\s+(?(between)and|to)\s+)(?P<high>{_NUMBER})"
    rf"|(?:\s+(?:in|out of|of|per)(?:\s+(?:a|every|each))?\s+|\s?:\s?)(?P<base>(?=[1-9]){_NUMBER}))?"
)
_LEAD = re.compile(
    r"(?:(?:(?:the )?(?:(?:final|short|correct) )?answer(?: is|:)|it(?: is|'s|s)|there (?:are|is)|is|are|was|were|"
    r"approximately|approx\.?|about|around|roughly|nearly|almost|circa|ca\.?|c\.|an estimated|estimated(?: at)?|"
    r"some|in|year|the year|by)(?![^\W_])|[~≈$])\s*"
)
_TWO_NUMBERS = re.compile(r"\s*(?:[^\W\d_]+\s+){0,2}[^\W\d_%]*\s*(?:,|;|/|\bor\b|\band\b|\bvs\b)\s*-?\d")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or range, as read.

    Attributes:
        low: The value; the lower end of a range. ``1 in 5,000`` is the value 1/5000.
        high: The upper end of a range, otherwise equal to ``low``.
        unit: Key of a known unit, ``%`` or ``mg/day``; empty for a bare number or a count of things.
        bound: One of ``<``, ``>``, ``<=``, ``>=`` or empty.
        text: Presentable form: bound as written, digits, one hyphen in a range, unit as written.
        counted: The things that a bare number counts, such as ``exons``, or empty; not part of ``text``.
    """

    low: Fraction
    high: Fraction
    unit: str
    bound: str
    text: str
    counted: str = ""


def words_to_digits(folded: str) -> str:
    """Replace numbers that are written in words: twenty-one becomes 21, two and a half becomes 2.5."""
    text = re.sub(rf"\b({_SMALL}) and a half\b", lambda m: f"{_word_value(m[1])}.5", folded)
    return _WORD_NUMBER.sub(
        lambda m: str(_word_value(m[0])), re.sub(r"\ba (?=(?:hundred|thousand|million|billion)\b)", "one ", text)
    )


def _word_value(text: str) -> int:
    total = group = 0
    for word in re.split(r"[\s-]+", text):
        if word == "hundred":
            group *= 100
        elif word in _SCALES:
            total, group = total + group * _SCALES[word], 0
        elif word != "and":
            group += _WORDS[word]
    return total + group


def _value(numeral: str) -> Fraction:
    sign, numeral = (-1, numeral[1:]) if numeral.startswith("-") else (1, numeral)
    factor = Fraction(sign)
    for scale, size in _SCALES.items():
        if numeral.endswith(scale):
            numeral, factor = numeral.removesuffix(scale).strip(), factor * size
    if power := re.fullmatch(r"(?:([\d.]+)\s*[x×]\s*)?([\d.]+)\s*\^\s*(-?\d{1,2})", numeral):
        base = Fraction(power[2])
        return factor * Fraction(power[1] or 1) * (base ** int(power[3]) if base else base)
    return factor * sum((Fraction(part) for part in numeral.split()), Fraction(0))


def _bound(match: re.Match[str], rest: str) -> tuple[str, str]:
    """The bound of a quantity and what follows it, without the words of a bound that stands behind."""
    before = next((b for i, b in enumerate(_BOUNDS) if match[f"b{i}"]), "")
    if behind := re.match(r"\+(?!\w)|\s+or (?:more|older|higher|longer|greater)\b", rest):
        return before or ">=", rest[behind.end() :]
    if behind := re.match(r"\s+or (?:less|fewer|younger|lower|shorter)\b", rest):
        return before or "<=", rest[behind.end() :]
    return before, rest


def _read(match: re.Match[str], rest: str) -> Quantity | None:
    """Build the quantity of a match; None where the digits belong to a name such as 15q21, 5-HT or 1950s."""
    (bound, rest), behind = _bound(match, rest), rest
    behind = behind[: len(behind) - len(rest)]
    unit = _UNIT.match(rest)
    if unit and not unit["space"] and unit["unit"] == "s" and len(match["low"]) >= 3:
        unit = None
    glued = re.match(r"-?[^\W\d_]|[.,'*:/]\w|[\d_^]", rest)
    if glued and not unit:
        return None
    low = _value(match["low"])
    high = _value(match["high"]) if match["high"] else low
    text = match[0][: match.start("low") - match.start()] if not match["between"] else ""
    text += match["low"] + (f"-{match['high']}" if match["high"] else "")
    if match["base"]:
        low = high = low / _value(match["base"])
        text += f" in {match['base']}"
    key, written = (_UNITS[unit["unit"]], unit[0].strip(" -")) if unit else ("", "")
    if not key and match["mid"]:
        key, written = _UNITS[match["mid"]], match["mid"]
    if unit and unit["per"]:
        key += "/" + unit["per"].removesuffix("s")
    text += behind + (("%" if key == "%" else " " + written) if key else "")
    return Quantity(low, high, key, bound, text, "" if key else _counted(rest))


def _counted(rest: str) -> str:
    match = _COUNTED.match(rest)
    return match[1] if match and match[1].split()[0] not in _NOT_COUNTED else ""


def _prepare(text: str) -> str:
    folded = re.sub(r"(?<![\d.])\.(?=\d)", "0.", fold(text))
    return plain_digits(words_to_digits(folded))


def parse_quantity(text: str) -> Quantity | None:
    """Read an answer that is, or starts with, one number or range; None for anything else."""
    rest = _prepare(text).strip(" .;:()[]\"'*")
    while lead := _LEAD.match(rest):
        rest = rest[lead.end() :]
    match = _QUANTITY.match(rest)
    if not match or _TWO_NUMBERS.match(rest, match.end()):
        return None
    return _read(match, rest[match.end() :])


def find_quantities(text: str) -> Iterator[Quantity]:
    """Every quantity in a piece of prose, in order; digits inside names are passed over."""
    prepared = _prepare(text)
    for match in _QUANTITY.finditer(prepared):
        if (found := _read(match, prepared[match.end() :])) is not None:
            yield found


def same_quantity(one: Quantity, other: Quantity) -> bool:
    """Whether two quantities are equal in value, range, bound and unit.

    A bare number equals a percentage of the same figure, and a quantity whose unit the other leaves out
    only if that other is the second argument: a gold answer without a unit accepts any.
    """
    if (one.low, one.high, one.bound) != (other.low, other.high, other.bound):
        return False
    if one.counted and other.counted and not _stems(one.counted) & _stems(other.counted):
        return False
    return one.unit == other.unit or not other.unit or (other.unit == "%" and not one.unit)


def _stems(words: str) -> set[str]:
    return {w.removesuffix("s") for w in words.split()}
