"""Three forms of reply, by a signature's output fields: what holds the server to them, and what reads them.

* one ``str``: one plain line, cut at the newline;
* one closed set (enum or ``Literal``): a JSON string out of the set, forced by a JSON schema;
* anything else: a JSON object, forced by a JSON schema and described in the prompt.

benchmarks/README.md has the measurements behind them.
"""

from __future__ import annotations

import json
import re
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy
    from pydantic.fields import FieldInfo

_LINE_TOKENS: Final = 48
_CHOICE_TOKENS: Final = 16
_OBJECT_TOKENS: Final = 256
PHRASE: Final = "phrase"  # name of the schema of :func:`held_to`
_WRAPPERS: Final = 3  # nested {"output": {...}} that are looked through

HEADER: Final = re.compile(r"\[\[\s*##\s*(\w+)\s*##\s*\]\]")  # of a field, in DSPy's chat adapter
_FENCE = re.compile(r"^```[\w-]*\s*\n(.*?)\n?```$", re.DOTALL)
_SPACE = re.compile(r"\s+")


class ReplyForm(StrEnum):
    """How a reply looks: one plain line, one member of a closed set, or a JSON object."""

    LINE = "line"
    CHOICE = "choice"
    OBJECT = "object"


def reply_form(signature: type[dspy.Signature]) -> ReplyForm:
    """The form of ``signature``'s reply."""
    annotations = [f.annotation for f in signature.output_fields.values()]
    if len(annotations) > 1:
        return ReplyForm.OBJECT
    if annotations[0] is str:
        return ReplyForm.LINE
    return ReplyForm.CHOICE if closed_set(annotations[0]) else ReplyForm.OBJECT


def reply_options(signature: type[dspy.Signature]) -> dict[str, Any]:
    """Request options that hold the server to the form: ``stop``, ``max_tokens``, ``response_format``."""
    match reply_form(signature):
        case ReplyForm.LINE:
            return {"stop": ["\n"], "max_tokens": _LINE_TOKENS}
        case ReplyForm.CHOICE:
            (field,) = signature.output_fields.values()
            schema: dict[str, Any] = {"type": "string", "enum": closed_set(field.annotation)}
            return {"max_tokens": _CHOICE_TOKENS, "response_format": _json_schema(signature, schema)}
        case ReplyForm.OBJECT:
            schema = _reply_model(signature).model_json_schema()
            return {"max_tokens": _OBJECT_TOKENS, "response_format": _json_schema(signature, schema)}


def held_to(phrases: Sequence[str]) -> dict[str, Any]:
    """Request options that hold a one-line reply to exactly one of ``phrases`` and ask how probable its tokens are.

    For ``predictor(..., config=held_to(phrases))``. The schema is a JSON string; :mod:`medhop_dspy.lm.engine` makes
    it a plain line where the server has grammars, since small models read on badly behind a quotation mark. The longest
    phrase fits into ``max_tokens``.
    """
    schema = {"name": PHRASE, "schema": {"type": "string", "enum": list(phrases)}, "strict": True}
    longest = max(len(json.dumps(phrase)) for phrase in phrases)  # characters; a token has one at least
    return {
        "response_format": {"type": "json_schema", "json_schema": schema},
        "logprobs": True,
        "max_tokens": max(_LINE_TOKENS, longest),
    }


def parse_reply(signature: type[dspy.Signature], reply: str) -> dict[str, Any]:
    """Values of the output fields, each validated as its field's type.

    Raises:
        ValueError: the reply is empty or not of the form.
    """
    try:
        return _parsed(signature, reply.strip())
    except RecursionError as error:
        raise ValueError("the reply is nested too deeply") from error


def _parsed(signature: type[dspy.Signature], reply: str) -> dict[str, Any]:
    fence = _FENCE.match(reply)
    text = fence.group(1).strip() if fence else reply
    names = list(signature.output_fields)
    form = reply_form(signature)
    values = _sections(text, names)
    if values is None and (form is ReplyForm.OBJECT or text.startswith("{")):
        values = _object_fields(text, names)
    if values is None:
        if form is ReplyForm.OBJECT:
            raise ValueError("the reply is not a JSON object")
        values = {names[0]: _unquoted(text.splitlines()[0].strip() if text else "")}
    missing = [n for n in names if n not in values]
    if missing:
        raise ValueError(f"the reply lacks {', '.join(missing)}")
    return {name: _typed(name, values[name], signature.output_fields[name]) for name in names}


def _sections(text: str, names: list[str]) -> dict[str, Any] | None:
    """Values behind ``[[ ## name ## ]]`` headers, the form of DSPy's chat adapter; the first of a name counts."""
    parts = HEADER.split(text)
    if len(parts) == 1:
        return None
    found: dict[str, Any] = {}
    for name, value in zip(parts[1::2], parts[2::2], strict=True):
        if name in names:
            found.setdefault(name, value.strip())
    return found


def _object_fields(text: str, names: list[str]) -> dict[str, Any] | None:
    """Fields of the JSON object in ``text``, looking through wrappers; None where there is no object.

    Raises:
        ValueError: an object without any of the fields.
    """
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ValueError(f"the reply is not valid JSON: {error}") from error
    for _ in range(_WRAPPERS):
        if any(n in value for n in names):
            return {n: value[n] for n in names if n in value}
        inner = next(iter(value.values())) if len(value) == 1 else None
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            inner = json.loads(inner)
        if not isinstance(inner, dict):
            break
        value = inner
    raise ValueError(f"the reply's JSON object has none of {', '.join(names)}")


def _typed(name: str, value: object, field: FieldInfo) -> Any:  # noqa: ANN401
    """``value`` as the field's type, within its bounds."""
    annotation: Any = field.annotation
    if annotation is str:
        if not isinstance(value, str | int | float) or isinstance(value, bool) or not str(value).strip():
            raise ValueError(f"{name} is {value!r}, not a text")
        return _SPACE.sub(" ", str(value)).strip()
    members = closed_set(annotation)
    if members:
        wanted = str(value).strip().rstrip(".").casefold()
        match = next((m for m in members if m.casefold() == wanted), None)
        if match is None:
            raise ValueError(f"{name} is {value!r}, not one of {', '.join(members)}")
        return annotation(match) if isinstance(annotation, type) else match
    if isinstance(value, str):
        value = json.loads(value)
    try:
        return TypeAdapter(Annotated[annotation, *field.metadata] if field.metadata else annotation).validate_python(
            value
        )
    except ValidationError as error:
        raise ValueError(f"{name}: {error.errors()[0]['msg']} (got {value!r:.80})") from error


def closed_set(annotation: Any) -> list[str]:  # noqa: ANN401
    """Values of an enum or a ``Literal`` of strings, in order; empty for anything else."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(m.value) for m in annotation]
    return [str(a) for a in get_args(annotation)] if get_origin(annotation) is Literal else []


def _reply_model(signature: type[dspy.Signature]) -> type[BaseModel]:
    fields: dict[str, Any] = {name: (f.annotation, f) for name, f in signature.output_fields.items()}
    return create_model("Reply", __config__=ConfigDict(extra="forbid"), **fields)


def _json_schema(signature: type[dspy.Signature], schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": signature.__name__, "schema": _bare(schema), "strict": True}}


def _bare(schema: Any) -> Any:  # noqa: ANN401
    """A JSON schema without titles, descriptions and DSPy's own keys, which only cost grammar time."""
    if isinstance(schema, list):
        return [_bare(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"title", "description", "desc", "prefix", "__dspy_field_type"}
    return {
        k: {n: _bare(s) for n, s in v.items()} if k in {"properties", "$defs"} else _bare(v)
        for k, v in schema.items()
        if k not in dropped
    }


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].strip() if quoted else text
