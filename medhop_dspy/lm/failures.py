"""From what a request can fail with to the package's own errors.

DSPy lets an engine's exception through unchanged only if it is an ``LMError``, and repeats a call only after the
``LMError`` leaves that stand for a passing fault. Each class here is therefore both: a leaf of
:mod:`medhop_dspy.errors`, which is what callers catch, and the DSPy error that carries the right retry policy.
"""

from __future__ import annotations

import re
from typing import Final

from dspy import lm15
from dspy.utils.exceptions import (
    AdapterParseError,
    ContextWindowExceededError,
    DSPyError,
    LMProviderError,
    LMServerError,
    LMTransportError,
)

from medhop_dspy import errors
from medhop_dspy.errors import ContextOverflowError, MedhopError, ReplyError, ServerError, ServerUnavailableError

# A server may ask for any pause; an unattended run should not sleep for an hour on its word.
LONGEST_PAUSE: Final = 60.0

# llama.cpp, OpenAI and vLLM, SGLang (both of its checks), text-generation servers.
_OVERFLOW: Final = re.compile(
    r"exceed_context_size_error|context_length_exceeded|exceeds? the (available|model'?s?( maximum)?) context"
    r"|maximum context length|longer than the (model'?s? )?(maximum )?(context|allowed)|context size has been exceeded",
    re.IGNORECASE,
)


class _EngineError(MedhopError):
    """What both error trees need set on an instance."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        DSPyError.__init__(self, message, retry_after=retry_after)
        self.hint = hint


class LMUnavailableError(_EngineError, ServerUnavailableError, LMTransportError):
    """The server may answer later; DSPy repeats the call."""


class LMRefusedError(_EngineError, ServerError, LMProviderError):
    """The server will answer the same again."""


class LMOverflowError(_EngineError, ContextOverflowError, ContextWindowExceededError):
    """The prompt is too long; DSPy knows the kind."""


class BadReplyError(_EngineError, ReplyError, LMProviderError):
    """A reply that must not count as one, and would come again."""


class EmptyReplyError(_EngineError, ReplyError, LMServerError):
    """A reply without text; worth another try, at once."""

    retryable = True


def describe(error: BaseException) -> str:
    """``Class: message`` with the public class name, for :attr:`medhop_dspy.trace.LMCall.error`."""
    public = next((c for c in type(error).__mro__ if c.__module__ == errors.__name__), type(error))
    return f"{public.__name__}: {error}"


def parse_reason(error: AdapterParseError) -> str:
    """Why a reply could not be read, with its beginning; ``empty reply`` where there was none."""
    reply = str(error.lm_response).strip()
    return f"{_first_line(error.__cause__ or error)} (reply: {reply[:120]!r})" if reply else "empty reply"


def translate(error: Exception, *, server: str, timeout: float) -> Exception:
    """The error to raise instead of ``error``, which a request to ``server`` ended with.

    Args:
        error: What the HTTP client or the reply reader raised.
        server: The server's address, for the message.
        timeout: Seconds the client waited for a byte, for the message.
    """
    if isinstance(error, MedhopError):
        return error
    if isinstance(error, lm15.LM15Error):
        return _translate_lm15(error, server, timeout)
    if isinstance(error, ValueError | TypeError | KeyError | AttributeError):
        return _not_a_completion(error, server)
    return error


def _not_a_completion(error: Exception, server: str) -> Exception:
    return LMRefusedError(
        f"{server} answered with something other than a chat completion: {error}",
        hint="Check that lm_url is the address of an OpenAI-compatible model server.",
    )


def _translate_lm15(error: lm15.LM15Error, server: str, timeout: float) -> Exception:
    words = f"{getattr(error, 'provider_code', None) or ''} {error.message}"
    if isinstance(error, lm15.ContextLengthError) or (
        isinstance(error, lm15.ProviderError) and _OVERFLOW.search(words)
    ):
        return LMOverflowError(
            f"the prompt does not fit the context window of {server}: {error.message}",
            hint="Lower evidence or chunk_size, or serve the model with a larger context_tokens.",
        )
    if isinstance(error, lm15.AuthError):
        return LMRefusedError(f"{server} refused the key: {_first_line(error)}", hint="Set api_key (MEDHOP_API_KEY).")
    if isinstance(error, lm15.TransportError | lm15.TimeoutError | lm15.ServerError | lm15.RateLimitError):
        pause = None if error.retry_after is None else min(error.retry_after, LONGEST_PAUSE)
        if error.status:
            return LMUnavailableError(
                f"{server} answered with HTTP {error.status}: {error.message}",
                hint="Read the server's log; it may be overloaded or broken.",
                retry_after=pause,
            )
        return LMUnavailableError(
            f"{server} did not answer (waited at most {timeout:g} s for a byte): {error.message}",
            hint="Start the server (`medhop lm serve`), or correct lm_url, or raise timeout.",
            retry_after=pause,
        )
    if isinstance(error, lm15.UnsupportedModelError):
        return LMRefusedError(
            f"{server} does not serve this model: {error.message}", hint="Set lm_model to a name that it serves."
        )
    if error.status == 200:
        return _not_a_completion(error, server)
    status = f"HTTP {error.status}: " if error.status else ""
    return LMRefusedError(f"{server} refused the request: {status}{error.message}")


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
