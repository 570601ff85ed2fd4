"""The text that counts as a model's reply: without its thinking, and never half of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from medhop_dspy.lm.failures import BadReplyError, EmptyReplyError

_MARK: Final = re.compile(r"<(?P<close>/?)(?:think|thinking|thought)\s*>|\{", re.IGNORECASE)
_DECODER: Final = json.JSONDecoder()

# Finish reasons that say that the text is not what the model meant to say.
_BROKEN_OFF: Final = frozenset({"abort", "error", "content_filter"})


def final_text(body: Mapping[str, Any], *, limit: int | None) -> str:
    """The final content of a chat completion.

    A reply whose content is empty may carry a whole JSON object as ``reasoning_content`` (servers with a reasoning
    parser put a constrained answer there); that object is the reply. Prose there is thinking and never one.

    Args:
        body: The server's JSON reply.
        limit: ``max_tokens`` of the request, for the message.

    Raises:
        EmptyReplyError: no text at all (a :class:`~medhop_dspy.errors.ReplyError`, retried).
        BadReplyError: cut, broken off, or nothing but thinking (a :class:`~medhop_dspy.errors.ReplyError`).
        ValueError: ``body`` is not a chat completion with one choice.
    """
    choice = _only_choice(body)
    message = choice["message"]
    reason = str(choice.get("finish_reason") or "")
    if reason == "length":
        raise BadReplyError(
            f"reply cut at {_completion_tokens(body)} tokens (max_tokens {limit or 'not set'})",
            hint="Raise max_tokens, or shorten what is asked for.",
        )
    if reason in _BROKEN_OFF:
        raise BadReplyError(f"reply broken off by the server: finish_reason {reason!r}")
    text = without_thinking(_text(message.get("content")))
    if text.strip():
        return text
    thinking = _text(message.get("reasoning_content") or message.get("reasoning"))
    if thinking.strip():
        return _object_or_refuse(thinking)
    raise EmptyReplyError("empty reply: no text in content", retry_after=0.0)


def without_thinking(text: str) -> str:
    """``text`` without ``<think>`` blocks, nested, unopened or upper case; JSON values are left as they are.

    Raises:
        BadReplyError: a block is opened and never closed, so that no answer follows.
    """
    kept: list[str] = []
    depth = start = position = 0
    while mark := _MARK.search(text, position):
        position = mark.end()
        if mark.group() == "{":
            # A tag inside a JSON string is content. Inside a block everything is thinking.
            position = _end_of_json(text, mark.start()) if depth == 0 else position
        elif not mark.group("close"):
            if depth == 0:
                kept.append(text[start : mark.start()])
            depth += 1
        elif depth:
            depth -= 1
            start = mark.end()
        else:  # closed without an opener: the template opened it, so all before was thinking
            kept = []
            start = mark.end()
    if depth:
        raise BadReplyError(
            f"reply ends inside its thinking, without an answer: {text[-80:]!r}", hint="Raise max_tokens."
        )
    if not kept and start == 0:
        return text
    return "".join([*kept, text[start:]]).strip()


def _end_of_json(text: str, start: int) -> int:
    try:
        return _DECODER.raw_decode(text, start)[1]
    except ValueError:
        return start + 1


def _only_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        raise ValueError(f"wanted one choice, got {choices!r:.80}")
    choice = choices[0]
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise ValueError(f"wanted a choice with a message, got {choice!r:.80}")
    return choice


def _completion_tokens(body: Mapping[str, Any]) -> str:
    usage = body.get("usage")
    return str(usage.get("completion_tokens", "?")) if isinstance(usage, dict) else "?"


def _text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    raise ValueError(f"wanted content as text, got {type(content).__name__}")


def _object_or_refuse(thinking: str) -> str:
    text = without_thinking(thinking).strip()
    try:
        whole = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise BadReplyError(f"no final content, only thinking: {thinking[:80]!r}", hint="Raise max_tokens.")
    return text
