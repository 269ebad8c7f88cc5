"""Reading an archive somebody gave us: what it says it holds is held against what it holds, in a folder of its own."""

import hashlib
import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote

from longca.errors import LongcaError
from longca.reporting.archive.crate import METADATA, RUN, Entry

# Far above any study's: what unpacks to more is no archive of one.
LARGEST_BYTES = 8 * 2**30
_PIECE = 2**20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
# What zipfile raises where a file is cut, or its directory leads elsewhere.
_BROKEN = (zipfile.BadZipFile, struct.error, NotImplementedError, ValueError, OSError)


class Archive:
    """An open archive: its entries by name, and what its metadata says of them."""

    def __init__(self, file: Path, opened: zipfile.ZipFile) -> None:
        """Raises LongcaError for names that lead out of a folder, links, and what is no RO-Crate."""
        self.file, self._zip = file, opened
        self.entries = _safe_entries(file, opened.infolist())
        if METADATA not in self.entries:
            raise LongcaError(f"{file}: has no {METADATA}; right: an archive that longca made")
        graph = _graph(file, self._metadata())
        self.listed = _listed(file, graph)
        self.config = _config(file, graph)
        if self.config not in self.listed:
            raise LongcaError(f"{file}: {METADATA}: {RUN} ran on {self.config!r}, which is none of its files")

    def problems(self) -> list[str]:
        """A line for each file that is missing, too many, or not the one that was archived."""
        found = [f"{name}: is missing" for name in self.listed if name not in self.entries]
        found += [
            f"{name}: is none of the archive's files"
            for name in self.entries
            if name not in self.listed and name != METADATA
        ]
        return found + [line for name in self.listed if name in self.entries for line in self._changes(name)]

    def unpack(self, folder: Path, names: Sequence[str] | None = None) -> None:
        """Write these entries (all) below `folder`, which is empty. Raises LongcaError for one that cannot be read."""
        for name in self.entries if names is None else names:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                for piece in self._pieces(name):
                    out.write(piece)

    def _metadata(self) -> bytes:
        return b"".join(self._pieces(METADATA))

    def _changes(self, name: str) -> Iterator[str]:
        digest, size = hashlib.sha256(), 0
        try:
            for piece in self._pieces(name):
                digest.update(piece)
                size += len(piece)
        except LongcaError as error:
            yield str(error).removeprefix(f"{self.file}: ")
            return
        if Entry(digest.hexdigest(), size) != self.listed[name]:
            yield f"{name}: has sha256 {digest.hexdigest()[:12]}…, archived was {self.listed[name].sha256[:12]}…"

    def _pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._zip.open(self.entries[name]) as content:
                while piece := content.read(_PIECE):
                    yield piece
        except (*_BROKEN, zlib.error, EOFError) as error:
            raise LongcaError(f"{self.file}: {name}: cannot be read: {error}") from error


@contextmanager
def open_archive(file: Path) -> Iterator[Archive]:
    """An archive to read from. Raises LongcaError where the file is none, or is not safe to unpack."""
    with file.open("rb") as content, _zip(file, content) as opened:
        yield Archive(file, opened)


def _zip(file: Path, content: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(content)
    except _BROKEN as error:
        raise LongcaError(f"{file}: is no whole zip file: {error}") from error


def _safe_entries(file: Path, infos: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        fault = _fault(info) or ("is there twice" if info.filename in entries else None)
        if fault:
            raise LongcaError(f"{file}: entry {info.filename!r} {fault}; nothing of it was unpacked")
        entries[info.filename] = info
    size = sum(info.file_size for info in infos)
    if size > LARGEST_BYTES:
        raise LongcaError(f"{file}: unpacks to {size} bytes; right: {LARGEST_BYTES} at most")
    folders = {parent.as_posix() for name in entries for parent in PurePosixPath(name).parents}
    for name in entries.keys() & folders:
        raise LongcaError(f"{file}: entry {name!r} is a file and a folder; nothing of it was unpacked")
    return entries


def _fault(info: zipfile.ZipInfo) -> str | None:
    """Why an entry must not be unpacked, or None."""
    name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
    parts = name.split("/")
    # orig_filename: zipfile cuts a name at a null byte.
    if (
        any(part in ("", ".", "..") for part in parts)
        or any(c in name for c in "\\:")
        or not name.isprintable()
    ):
        return "has a name that is no path below a folder"
    if info.orig_filename != name:
        return "has a name that is read in two ways"
    if kind not in (0, stat.S_IFREG):  # 0: packed by what knows no kinds
        return "is no ordinary file"
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
        return "is encrypted or packed in a way that archives are not"
    return None


def _graph(file: Path, metadata: bytes) -> dict[str, dict[str, Any]]:
    """The entities of the metadata by their identifier."""
    try:
        return {entity["@id"]: entity for entity in json.loads(metadata)["@graph"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LongcaError(f"{file}: {METADATA}: is no RO-Crate metadata: {error}") from error


def _listed(file: Path, graph: dict[str, dict[str, Any]]) -> dict[str, Entry]:
    """The files that the root data set has, with what was archived."""
    try:
        parts = [part["@id"] for part in graph["./"]["hasPart"]]
        return {
            unquote(part): Entry(str(graph[part]["sha256"]), int(graph[part]["contentSize"]))
            for part in parts
        }
    except (KeyError, TypeError, ValueError) as error:
        raise LongcaError(
            f"{file}: {METADATA}: lacks a part, its sha256 or its contentSize: {error}"
        ) from error


def _config(file: Path, graph: dict[str, dict[str, Any]]) -> str:
    """The name of the study's config."""
    try:
        return unquote(graph[RUN]["object"]["@id"])
    except (KeyError, TypeError) as error:
        raise LongcaError(f"{file}: {METADATA}: does not say what {RUN} ran on: {error}") from error
