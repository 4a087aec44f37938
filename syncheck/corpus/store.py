"""Store of finished rows: a folder of Parquet parts, complete or absent, and how it is filled part by part."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import CheckpointError, InputError, MismatchError, MissingExtraError
from syncheck.base.files import UNFINISHED, read_object, replaced
from syncheck.base.printable import progress
from syncheck.base.records import JsonDict
from syncheck.corpus.records import Line, Worker

if TYPE_CHECKING:
    import pyarrow as pa
    from tqdm import tqdm

FORMAT = "syncheck.store.v2"
_RUN = "_run.json"
"""Name of the note, with a first character that readers of a folder of Parquet files ignore."""
_PARTS = "part-*.parquet"
_REMEDY = "delete it and run the command that wrote it again, which answers its records again"


class Store:
    """The rows of a run over a corpus, by record, in a ``folder`` that is made if needed.

    A part is written to a temporary file, flushed to the disk and renamed, so that a kill costs only unfinished parts.
    Its name has a checksum of it and of its run, and opening a store checks every part. ``_run.json`` has the ``facts``
    that determine the rows besides the records, by name.

    ``pandas.read_parquet(folder)`` reads one row for each record with its ``key``, ``id``, ``source`` and ``line``, its
    ``error`` or null, the ``lowest_score`` of its sentences or null, and ``row``, the JSON that the command writes for
    it. Unfinished files that a killed process left behind are removed.

    A folder of a run with other facts, or of parts without a note of them, raises MismatchError. A damaged note, and a
    part that is damaged or repeats a record of another, raise CheckpointError, a folder that cannot be written
    InputError; without pyarrow, MissingExtraError is raised.
    """

    def __init__(self, folder: str | Path, facts: Mapping[str, str]) -> None:
        _parquet()
        self.folder = Path(folder)
        noted = {"format": FORMAT, **facts}
        _enter_run(self.folder / _RUN, noted)
        self.run = _run_of(noted)
        for path in self.folder.glob(f"*{UNFINISHED}*"):
            path.unlink(missing_ok=True)
        self._parts: list[str] = []
        self._keys: set[str] = set()
        self._index()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def key(self, line: Line) -> str:
        """Compute the key of a record under the facts of this store."""
        return line.digest(self.run)

    def add(self, number: int, table: pa.Table) -> None:
        """Write a part, a table from :func:`table_of`; its number only orders the files.

        A record that the store has already raises InputError.
        """
        import pyarrow as pa

        keys = table["key"].to_pylist()
        if (again := self._keys.intersection(keys)) or len(set(keys)) < len(keys):
            raise InputError(f"expected records that {self.folder} does not hold yet; found {len(again)} that it does")
        stream = pa.BufferOutputStream()
        _parquet().write_table(table, stream, write_statistics=False)  # which would hold whole rows a second time
        content = bytes(stream.getvalue())
        name = f"part-{number:06d}-{_checksum(self.run, content)}.parquet"
        with replaced(self.folder / name) as (file, _):
            file.write(content)
        self._parts.append(name)
        self._keys.update(keys)

    def rows(self) -> Iterator[tuple[str, JsonDict]]:
        """Yield the key and the row of each record, part by part.

        A part that was damaged since the store was opened raises CheckpointError.
        """
        for name in sorted(self._parts):
            yield from _rows(self.folder / name, self.run)

    def remove(self) -> None:
        """Remove the store once its rows are elsewhere; a folder that has anything else stays."""
        for pattern in ("part-*", f"{_RUN}*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        self.folder.rmdir()

    def _index(self) -> None:
        for path in sorted(self.folder.glob(_PARTS)):
            (keys,) = _read(path, self.run, "key")
            if again := len(keys) - len(set(keys) - self._keys):
                raise CheckpointError(f"{path} has {again} records twice, or that another part has; {_REMEDY}")
            self._parts.append(path.name)
            self._keys.update(keys)


def is_stored(folder: str | Path) -> bool:
    """Tell whether a folder is a store."""
    return (Path(folder) / _RUN).is_file()


def stored_rows(folder: str | Path) -> Iterator[JsonDict]:
    """Yield the rows of a store as it is, without entering its run; another process may be writing to it.

    A damaged or repeated part, or a store of another version, raises CheckpointError.
    """
    noted = read_object(Path(folder) / _RUN)
    if noted.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder} is a store of the format {noted.get('format')!r}, expected {FORMAT!r}; read it with the version "
            "of syncheck that wrote it, or write it again"
        )
    seen: set[str] = set()
    for path in sorted(Path(folder).glob(_PARTS)):
        for key, row in _rows(path, _run_of(noted)):
            if key in seen:
                raise CheckpointError(f"{path} has a record that another part has; {_REMEDY}")
            seen.add(key)
            yield row


def table_of(lines: Sequence[Line], rows: Sequence[JsonDict], keys: Sequence[str]) -> pa.Table:
    """Convert rows to the table of a part."""
    import pyarrow as pa

    scored = [[s["score"] for s in row.get("sentences", ()) if s["score"] is not None] for row in rows]
    columns = {
        "key": pa.array(keys, pa.string()),
        "id": pa.array([None if row.get("id") is None else str(row["id"]) for row in rows], pa.string()),
        "source": pa.array([line.source for line in lines], pa.string()),
        "line": pa.array([line.number for line in lines], pa.int64()),
        "error": pa.array([row.get("error") for row in rows], pa.string()),
        "lowest_score": pa.array([min(scores, default=None) for scores in scored], pa.float64()),
        "row": pa.array([json.dumps(row, ensure_ascii=False) for row in rows], pa.string()),
    }
    return pa.table(columns)


def _run_of(noted: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(noted, sort_keys=True).encode()).hexdigest()


def _checksum(run: str, content: bytes) -> str:
    return hashlib.sha256(run.encode() + content).hexdigest()[:16]


def _read(path: Path, run: str, *columns: str) -> list[list[str]]:
    """Read columns of a part of a run; without the checksum of its name, CheckpointError."""
    import pyarrow as pa

    try:
        if not path.is_file():  # a pipe would be waited for
            raise ValueError("it is not a regular file")
        content = path.read_bytes()
        if not path.stem.endswith(f"-{_checksum(run, content)}"):
            raise ValueError("its checksum is not the one in its name")
        table = _parquet().read_table(pa.BufferReader(content), columns=list(columns))
        columns_read = [table[name] for name in columns]
        if any(column.type != pa.string() or column.null_count for column in columns_read):
            raise ValueError("it is not a part of a store")
        return [column.to_pylist() for column in columns_read]
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise CheckpointError(f"{path} is damaged, or of another run ({error}); {_REMEDY}") from error


def _rows(path: Path, run: str) -> Iterator[tuple[str, JsonDict]]:
    keys, texts = _read(path, run, "key", "row")
    try:
        rows = [dict(json.loads(text)) for text in texts]
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a part of a store ({error}); {_REMEDY}") from error
    yield from zip(keys, rows, strict=True)


def _parquet() -> Any:  # noqa: ANN401 - a module
    with MissingExtraError.unless("pyarrow", "data"):
        import pyarrow.parquet as parquet
    return parquet


def _enter_run(note: Path, facts: Mapping[str, str]) -> None:
    """Create the folder of a run with a note of the facts that determine its results, or check an existing note."""
    folder = note.parent
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder {str(folder)!r}: {error.strerror}") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(
            f"the folder {str(folder)!r} cannot be read and written; change its permissions, or pass another output"
        )
    if not note.exists():
        if any(folder.glob(_PARTS)):
            raise MismatchError(f"{folder} holds parts but no {note.name}; delete the folder, or pass another output")
        with replaced(note) as (file, _):
            file.write(f"{json.dumps(dict(facts), indent=2)}\n".encode())
        return
    try:
        if not note.is_file():
            raise ValueError("it is not a regular file")
        noted = dict(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{note} is damaged ({error}); delete {folder} and start again") from error
    if changed := [name for name in {**facts, **noted} if noted.get(name) != facts.get(name)]:
        raise MismatchError(
            f"{folder} holds parts of another run: {', '.join(changed)} changed. Continue "
            "with the original values, delete the folder to start again, or pass another output"
        )


PART_SIZE = 64


def answer_corpus(
    lines: Iterable[Line],
    store: Store,
    worker: Worker,
    *,
    part_size: int = PART_SIZE,
    total: int | None = None,
    show_progress: bool | None = None,
    on_part: Callable[[pa.Table], None] = lambda table: None,
) -> set[str]:
    """Answer the records of a corpus that a store lacks.

    A part has the missing ones among ``part_size`` consecutive records of the corpus, the most that a kill can cost, so
    that a run that was killed continues with the same parts. Equal records, ids included, are answered once.

    ``lines`` are the whole corpus, ``total`` their number for the progress bar. ``on_part`` is called with the table
    of each part once it is stored. The result has the keys of the corpus's records; a store may have rows of other
    records too.
    """
    asked: set[str] = set()
    with progress(total=total, desc="records", unit=" records", shown=show_progress) as bar:
        for number, missing in _missing(lines, store, part_size, asked, bar):
            answered = [*missing.values()]
            table = table_of(answered, worker(answered), [*missing])
            store.add(number, table)
            bar.update(len(table))
            on_part(table)
    return asked


def _missing(
    lines: Iterable[Line], store: Store, size: int, asked: set[str], bar: tqdm
) -> Iterator[tuple[int, dict[str, Line]]]:
    """Yield the number of each part with the records that the store lacks, by their keys; ``asked`` gets all keys."""
    lines = iter(lines)
    for number, part in enumerate(iter(lambda: list(islice(lines, size)), [])):
        missing: dict[str, Line] = {}
        for line in part:
            if (key := store.key(line)) in asked or key in store:
                bar.update()
            else:
                missing[key] = line
            asked.add(key)
        if missing:
            yield number, missing
