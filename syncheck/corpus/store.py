"""Store of finished rows: a folder of Parquet parts that are complete or absent, and an index of them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from syncheck.base.errors import CheckpointError, InputError, MissingExtraError
from syncheck.base.files import UNFINISHED, JsonDict, enter_run, replaced
from syncheck.corpus.records import Line

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "syncheck.store.v1"
_RUN, _MANIFEST, _DAMAGED = "_run.json", "_manifest.json", "_damaged-"
"""Names of other files, with a first character that readers of a folder of Parquet files ignore."""

logger = logging.getLogger(__name__)


class Store:
    """The rows of a run over a corpus, by record.

    A part is written to a temporary file, flushed to the disk and renamed, so that a kill costs only unfinished parts.
    ``_run.json`` has the facts that determine the rows. ``_manifest.json`` is an index; parts that it lacks are read
    themselves. A part that cannot be read is put aside, and its records count as missing again.

    Parameters
    ----------
    folder
        Created if needed. ``pandas.read_parquet(folder)`` reads it: one row for each record with its ``key``, ``id``,
        ``source`` and ``line``, its ``error`` or null, the ``lowest_score`` of its sentences or null, and ``row``, the
        JSON that the command writes for it.
    facts
        Facts that determine the rows besides the records, by name.
    shared
        True if other processes write parts of their own at the same time. Otherwise, unfinished files that a killed
        process left behind are removed.

    Raises
    ------
    MismatchError
        If the folder belongs to a run with other facts, or has parts without a note of them.
    CheckpointError
        If the note of the run is damaged.
    InputError
        If the folder cannot be created.
    MissingExtraError
        If pyarrow is not installed.
    """

    def __init__(self, folder: str | Path, facts: Mapping[str, str], *, shared: bool = False) -> None:
        _parquet()
        self.folder = Path(folder)
        noted = {"format": FORMAT, **facts}
        enter_run(self.folder / _RUN, noted)
        self.run = hashlib.sha256(json.dumps(noted, sort_keys=True).encode()).hexdigest()
        for path in () if shared else self.folder.glob(f"*{UNFINISHED}*"):
            path.unlink(missing_ok=True)
        self._parts = self._indexed()
        self._keys = {key for part in self._parts.values() for key in part["keys"]}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with replaced(self.folder / _MANIFEST) as (file, _):
            file.write(json.dumps({"format": FORMAT, "parts": self._parts}, indent=1).encode() + b"\n")

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def key(self, line: Line) -> str:
        """Return the key of a record under the facts of this store."""
        return line.digest(self.run)

    def add(self, number: int, table: pa.Table) -> None:
        """Write a part, a table from :func:`table_of`; its number only orders the files.

        A record that the store has already raises InputError.
        """
        keys = table["key"].to_pylist()
        again = self._keys.intersection(keys)
        if again or len(set(keys)) < len(keys):
            raise InputError(f"expected records that {self.folder} does not hold yet; found {len(again)} that it does")
        name = f"part-{number:06d}-{hashlib.sha256(''.join(keys).encode()).hexdigest()[:8]}.parquet"
        path = self.folder / name
        with replaced(path) as (file, _):
            # Statistics would hold whole rows a second time, out of reach of the checksums.
            _parquet().write_table(table, file, write_page_checksum=True, write_statistics=False)
        self._parts[name] = _entry(path, keys)
        self._keys.update(keys)

    def rows(self) -> Iterator[tuple[str, JsonDict]]:
        """Yield the key and the row of each record, part by part.

        A part that was damaged since the store was opened raises CheckpointError.
        """
        for name in sorted(self._parts):
            table = _read(self.folder / name, ["key", "row"])
            if table is None:
                raise CheckpointError(f"{self.folder / name} is damaged; run the same command again to replace it")
            for key, row in zip(table["key"].to_pylist(), table["row"].to_pylist(), strict=True):
                yield key, json.loads(row)

    def remove(self) -> None:
        """Remove the store once its rows are elsewhere; a folder that has anything else stays."""
        for pattern in ("part-*", f"{_RUN}*", f"{_MANIFEST}*", f"{_DAMAGED}*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        self.folder.rmdir()

    def _indexed(self) -> dict[str, dict[str, Any]]:
        known = self._manifest()
        parts: dict[str, dict[str, Any]] = {}
        for path in sorted(self.folder.glob("part-*.parquet")):
            state = path.stat()
            entry = known.get(path.name)
            if entry is not None and (entry["bytes"], entry["modified_ns"]) == (state.st_size, state.st_mtime_ns):
                parts[path.name] = entry
            elif (table := _read(path, None)) is not None:
                parts[path.name] = _entry(path, table["key"].to_pylist())
            else:
                aside = path.with_name(f"{_DAMAGED}{path.name}")
                logger.warning("%s cannot be read; put aside as %s, its records are answered again", path, aside.name)
                path.replace(aside)
        return parts

    def _manifest(self) -> dict[str, dict[str, Any]]:
        try:
            return dict(json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))["parts"])
        except (OSError, ValueError, KeyError, TypeError):  # only an index: the parts are read instead
            return {}


def is_stored(folder: str | Path) -> bool:
    """Return True if a folder is a store."""
    return (Path(folder) / _RUN).is_file()


def stored_rows(folder: str | Path) -> Iterator[JsonDict]:
    """Yield the rows of a store as it is, without entering its run; another process may be writing to it.

    A damaged part raises CheckpointError.
    """
    for path in sorted(Path(folder).glob("part-*.parquet")):
        table = _read(path, ["key", "row"])
        if table is None:
            raise CheckpointError(f"{path} is damaged; run the command that writes {folder} again to replace it")
        yield from map(json.loads, table["row"].to_pylist())


def table_of(lines: Sequence[Line], rows: Sequence[JsonDict], keys: Sequence[str]) -> pa.Table:
    """Return rows as the table of a part."""
    import pyarrow as pa

    columns = {
        "key": pa.array(keys, pa.string()),
        "id": pa.array([None if row.get("id") is None else str(row["id"]) for row in rows], pa.string()),
        "source": pa.array([line.source for line in lines], pa.string()),
        "line": pa.array([line.number for line in lines], pa.int64()),
        "error": pa.array([row.get("error") for row in rows], pa.string()),
        "lowest_score": pa.array([_lowest(row) for row in rows], pa.float64()),
        "row": pa.array([json.dumps(row, ensure_ascii=False) for row in rows], pa.string()),
    }
    return pa.table(columns)


def _lowest(row: JsonDict) -> float | None:
    scores = [sentence["score"] for sentence in row.get("sentences", ()) if sentence["score"] is not None]
    return min(scores, default=None)


def _entry(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    state = path.stat()
    return {"bytes": state.st_size, "modified_ns": state.st_mtime_ns, "keys": list(keys)}


def _read(path: Path, columns: list[str] | None) -> pa.Table | None:
    """Read a part and verify its checksums; None if it is damaged."""
    import pyarrow as pa

    try:
        with _parquet().ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns)
            return table if {"key", "row"} <= set(table.column_names) else None
    except (OSError, ValueError, pa.ArrowException):
        return None


def _parquet() -> Any:  # noqa: ANN401 - a module
    with MissingExtraError.unless("pyarrow", "data"):
        import pyarrow.parquet as parquet
    return parquet
