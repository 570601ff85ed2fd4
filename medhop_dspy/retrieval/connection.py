"""Clients of Chroma, and its errors as ours."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from medhop_dspy.errors import StoreError
from medhop_dspy.retrieval.disk import disk_errors, is_disk_full, is_nearly_full
from medhop_dspy.retrieval.location import FolderLocation, Location, ServerLocation

SERVER_TIMEOUT: Final = 60.0  # seconds without a byte from a Chroma server; its own client would wait for ever


def chroma_version(location: Location) -> str:
    """Version of the Chroma that runs here: the library's for a folder, the server's for a server."""
    if isinstance(location, FolderLocation):
        import chromadb

        return str(chromadb.__version__)
    with chroma_errors(location), connection(location) as client:
        return str(client.get_version())


@contextmanager
def chroma_errors(location: Location) -> Iterator[None]:
    """Turn errors of Chroma, of the connection to it and of the disk below it into ours.

    Raises:
        DiskFullError: if no space is left.
        StoreError: for everything else.
    """
    import httpx
    from chromadb.errors import ChromaError

    try:
        with disk_errors(location):
            yield
    # Chroma reports an unreachable server, and input that it refuses, as ValueError.
    except (ChromaError, httpx.HTTPError, ValueError) as error:
        if is_disk_full(error) or (isinstance(location, FolderLocation) and is_nearly_full(location.folder)):
            with disk_errors(location):
                raise OSError(errno.ENOSPC, str(error)) from error
        hint = "If the index is damaged, delete it and build it again."
        if "readonly database" in str(error):
            hint = "Chroma writes to an index that it searches: allow that, or copy the index to where it is allowed."
        if isinstance(location, ServerLocation):
            hint = "Check that the Chroma server runs."
        raise StoreError(f"the index {location}: {error}", hint=hint) from error


def connect(location: Location) -> Any:  # noqa: ANN401
    """A client of Chroma; no telemetry, and nothing taken from an ``.env`` file in the working folder.

    Raises:
        httpx.HTTPError: the server does not answer; :func:`chroma_errors` makes it one of ours.
    """
    import chromadb
    import httpx
    from chromadb.config import Settings

    options: dict[str, Any] = {
        "_env_file": None,
        "anonymized_telemetry": False,
        "chroma_otel_collection_endpoint": "",
    }
    settings = Settings(**options)
    if isinstance(location, FolderLocation):
        return chromadb.PersistentClient(str(location.database), settings=settings)
    host = f"[{location.host}]" if ":" in location.host else location.host
    # Asked first because making the client asks the server without any limit of time.
    httpx.get(f"http{'s' * location.ssl}://{host}:{location.port}/api/v2/heartbeat", timeout=SERVER_TIMEOUT)
    client: Any = chromadb.HttpClient(host, location.port, ssl=location.ssl, settings=settings)
    client._server._session.timeout = SERVER_TIMEOUT
    return client


def disconnect(client: Any) -> None:  # noqa: ANN401
    """Release files and connections of a client; a second call does nothing."""
    import httpx

    client.close()
    # Chroma 1.5 leaves the connections to a server open, its own and those of the client inside that checks names.
    for part in (client, getattr(client, "_admin_client", None)):
        session = getattr(getattr(part, "_server", None), "_session", None)
        if isinstance(session, httpx.Client):
            session.close()


@contextmanager
def connection(location: Location) -> Iterator[Any]:
    """A client for a short while."""
    client = connect(location)
    try:
        yield client
    finally:
        disconnect(client)
