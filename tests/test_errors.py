"""The error tree: exit codes and retryability as documented."""

import inspect
import re

import pytest

from medhop_dspy import errors
from medhop_dspy.errors import MedhopError

LEAVES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, MedhopError)]


@pytest.mark.parametrize("error", LEAVES)
def test_every_exit_code_is_in_the_table(error):
    table = {int(n) for n in re.findall(r"^(\d+) ", errors.__doc__, re.MULTILINE)}
    assert error.exit_code in table


def test_only_passing_faults_are_retryable():
    assert {c.__name__ for c in LEAVES if c.retryable} == {"ServerUnavailableError", "StoreLockedError"}


def test_a_hint_travels_apart_from_the_message():
    error = errors.StoreError("no index", hint="Build one.")
    assert (str(error), error.hint) == ("no index", "Build one.")
