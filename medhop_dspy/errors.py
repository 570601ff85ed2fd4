"""One error tree. A message says what was seen, what was wanted and what to do.

Exit codes of the command line come from this table and from nowhere else:

====  =====================================================================
code  meaning
====  =====================================================================
0     every question was answered or reported as unvalidated
1     at least one question failed; the failures are in the output
2     unusable input: arguments, question, question file
3     settings or saved program
4     model server
5     vector store or knowledge graph
6     model artefact
7     corpus or knowledge file
8     no space left on the device
130   interrupted
====  =====================================================================
"""

from __future__ import annotations

from typing import ClassVar


class MedhopError(Exception):
    """Base of every expected error.

    Attributes:
        exit_code: What the command line returns for it.
        retryable: Whether the same call may succeed later without any change.
        hint: One sentence that says how to mend it, or the empty string.
    """

    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InputError(MedhopError):
    """A question, argument or question file that cannot be used."""

    exit_code = 2


class SettingsError(MedhopError):
    """A setting that is unknown, out of bounds or contradicts another."""

    exit_code = 3


class ProgramError(MedhopError):
    """A saved program that does not fit this code, model, settings or index."""

    exit_code = 3


class ServerError(MedhopError):
    """The model server answered with an error that a retry will not mend."""

    exit_code = 4


class ServerUnavailableError(ServerError):
    """The model server is down, refuses, hangs or answers 5xx or 429."""

    retryable = True


class ContextOverflowError(ServerError):
    """The prompt does not fit the context window of the served model."""


class ReplyError(MedhopError):
    """The model's reply is empty, cut, or not of the requested form."""


class StoreError(MedhopError):
    """A vector store that is missing, half-built, locked or of another build."""

    exit_code = 5


class StoreLockedError(StoreError):
    """Another process is writing to the vector store."""

    retryable = True


class GraphError(StoreError):
    """A knowledge graph that is missing, half-built, damaged or of another index."""


class ArtefactError(MedhopError):
    """A model file that is missing, incomplete or has another hash."""

    exit_code = 6


class CorpusError(MedhopError):
    """A corpus or knowledge file that cannot be read."""

    exit_code = 7


class DiskFullError(MedhopError):
    """No space is left on the device."""

    exit_code = 8
