"""Chunks and vectors in Chroma: the only module that talks to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from medhop_dspy.errors import DiskFullError, InputError, StoreError
from medhop_dspy.retrieval.location import FolderLocation, Location
from medhop_dspy.retrieval.manifest import Manifest, Recipe
from medhop_dspy.retrieval.metadata import Chunk, passage_of
from medhop_dspy.trace import Passage

