"""Where an index is: a folder, or a collection of a Chroma server."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from medhop_dspy.errors import SettingsError

DEFAULT_COLLECTION: Final = "medhop"
_COLLECTION: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]")  # Chroma's rule
_PORTS: Final = {"http": 8000, "https": 443}  # 8000 is where `chroma run` listens
_WANTED: Final = "Give a folder, or http(s)://host:port/collection without user, query or fragment."


@dataclass(frozen=True, slots=True)
class FolderLocation:
    """An index in a folder of this machine."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def manifest(self) -> Path:
        """The manifest's file."""
        return self.folder / "manifest.json"

    @property
    def database(self) -> Path:
        """The folder that Chroma writes to."""
        return self.folder / "chroma"

    def lock_file(self, home: Path) -> Path:
        """What a writer holds."""
        return self.folder / "writer.lock"


@dataclass(frozen=True, slots=True)
class ServerLocation:
    """An index on a Chroma server."""

    host: str
    port: int
    ssl: bool
    collection: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.ssl else 'http'}://{host}:{self.port}/{self.collection}"

    def lock_file(self, home: Path) -> Path:
        """What a writer on this machine holds. Writers on other machines are not seen."""
        return home / "locks" / f"{hashlib.sha256(str(self).encode()).hexdigest()[:16]}.lock"


Location = FolderLocation | ServerLocation


def parse_location(text: str) -> Location:
    """A folder, or ``http(s)://host[:port][/collection]``.

    Raises:
        SettingsError: if it is neither.
    """
    if not text.strip():
        raise SettingsError("the index location is empty", hint="Give a folder or http://host:port/collection.")
    if "://" not in text:
        return FolderLocation(Path(text).expanduser().absolute())
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise SettingsError(f"index location {text!r} is no URL: {error}", hint=_WANTED) from error
    collection = url.path.strip("/") or DEFAULT_COLLECTION
    if url.scheme not in _PORTS or not url.hostname or url.username or url.query or url.fragment:
        raise SettingsError(f"index location {text!r} cannot be used", hint=_WANTED)
    if not _COLLECTION.fullmatch(collection):
        raise SettingsError(
            f"index location {text!r} names the collection {collection!r}",
            hint="Names have 3 to 512 letters, digits, dots, dashes and underscores, and begin and end with a letter "
            "or digit.",
        )
    return ServerLocation(url.hostname, port or _PORTS[url.scheme], url.scheme == "https", collection)
