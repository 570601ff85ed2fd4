"""Which stores may be opened, and which may be written to."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from medhop_dspy.errors import StoreError
from medhop_dspy.retrieval.connection import chroma_version
from medhop_dspy.retrieval.locking import holder, is_locked
from medhop_dspy.retrieval.manifest import Manifest, Recipe, check_chroma, check_recipe
from medhop_dspy.retrieval.store import Store, find_manifest

if TYPE_CHECKING:
    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.retrieval.location import Location
    from medhop_dspy.settings import Settings

AGAIN: Final = "Run `medhop index build` again; what is there is kept."
_log = logging.getLogger(__name__)


def open_complete(place: Location, encoder: Encoder, settings: Settings) -> tuple[Store, Manifest]:
    """A store that may be searched, and its manifest.

    Raises:
        StoreError: see :meth:`medhop_dspy.retrieval.index.Index.open`.
    """
    manifest = find_manifest(place)
    if manifest is None:
        raise StoreError(f"there is no index in {place}", hint="Build one with `medhop index build`.")
    _check_state(manifest, place, settings)
    check_fit(manifest, place, encoder, settings)
    store = Store.open(place)
    try:
        if manifest.state == "complete":
            check_count(manifest, store)
        if not store.count:
            raise StoreError(f"the index {place} is empty", hint="Build it from a corpus with `medhop index build`.")
    except StoreError:
        store.close()
        raise
    return store, manifest


def open_for_build(place: Location, encoder: Encoder, settings: Settings) -> tuple[Store, Manifest]:
    """A store to write to, new or continued, and its manifest. The caller holds the writer's lock.

    Raises:
        StoreError: if something else is there, or an index that was made in another way.
    """
    manifest = find_manifest(place)
    if manifest is None:
        manifest = Manifest("building", chroma_version(place), Recipe.of(encoder, settings))
    check_fit(manifest, place, encoder, settings)
    if manifest.state == "building":
        return Store.create(place, manifest), manifest
    return Store.open(place), manifest


def check_fit(manifest: Manifest, place: Location, encoder: Encoder, settings: Settings) -> None:
    """Refuse an index of another Chroma, model or chunking.

    Raises:
        StoreError: naming what is stored and what is wanted.
    """
    check_chroma(manifest.chroma, chroma_version(place), str(place))
    # The approximate search's settings are the software's, not the user's: those of another release still serve.
    wanted = replace(Recipe.of(encoder, settings), hnsw=manifest.recipe.hnsw)
    check_recipe(manifest.recipe, wanted, str(place))


def check_count(manifest: Manifest, store: Store) -> None:
    """Refuse a store that has lost or gained chunks.

    Raises:
        StoreError: naming both numbers.
    """
    count = store.count
    if count != manifest.chunks:
        raise StoreError(f"the index {store.location} holds {count} chunks, wanted {manifest.chunks}", hint=AGAIN)


def _check_state(manifest: Manifest, place: Location, settings: Settings) -> None:
    """Refuse an index that no build has completed, or that an interrupted update has left half changed."""
    if manifest.state == "complete":
        return
    lock = place.lock_file(settings.home)
    busy = is_locked(lock)
    if manifest.state == "building":
        doing = f"process {holder(lock)} is building it" if busy else "its build was interrupted"
        raise StoreError(f"the index {place} is not complete: {doing}", hint="Wait." if busy else AGAIN)
    if not busy:
        raise StoreError(f"the index {place} is half changed: its update was interrupted", hint=AGAIN)
    _log.warning("process %s is changing the index %s", holder(lock), place)
