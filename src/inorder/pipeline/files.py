"""Which files a path means, and whether they are whole, before Spark looks at them."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from inorder.core.errors import BadTrace

FORMATS = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".json": "json",
    ".ndjson": "json",
    ".csv": "csv",
}


class Files(Struct):
    """Files of one format; `rows` is known without reading them for Parquet only."""

    path: str
    format: str
    names: list[str]
    rows: int | None = None

    @property
    def places(self) -> list[str]:
        """The names as Spark needs them: its JVM may have been started in another folder."""
        return [name if is_remote(name) else str(Path(name).absolute()) for name in self.names]


def is_remote(path: str) -> bool:
    return "://" in path


def find_files(path: str) -> Files:
    """The data files at a path: itself, or those anywhere inside a folder."""
    if is_remote(path):
        return Files(path, format_of(path) or "parquet", [path])
    place = Path(path)
    if not place.exists():
        raise BadTrace(path, "does not exist")
    if place.is_file():
        return _of_one_format(path, [place])
    hidden = (".", "_")
    inside = [
        file
        for file in sorted(place.rglob("*"))
        if file.is_file()
        and not any(part.startswith(hidden) for part in file.relative_to(place).parts)
    ]
    if not inside:
        raise BadTrace(path, "is an empty folder")
    return _of_one_format(path, [file for file in inside if format_of(file.name)] or inside)


def format_of(name: str) -> str:
    """The format a file's name tells (compressed or not), or nothing."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".zst"):
        suffixes.pop()
    return FORMATS.get(suffixes[-1], "") if suffixes else ""


def _of_one_format(path: str, files: list[Path]) -> Files:
    formats = sorted({format_of(file.name) for file in files})
    if formats == [""]:
        known = ", ".join(sorted(FORMATS))
        raise BadTrace(str(files[0]), f"is none of {known}")
    if len(formats) > 1:
        raise BadTrace(path, f"mixes {' and '.join(formats)} files: audit one kind at a time")
    for file in files:
        if file.stat().st_size == 0:
            raise BadTrace(str(file), "is an empty file (0 bytes)")
    names = [str(file) for file in files]
    if formats[0] != "parquet":
        return Files(path, formats[0], names)
    return Files(path, "parquet", names, whole_parquet(path, names))


def whole_parquet(path: str, names: list[str]) -> int:
    """The rows in the Parquet files, from their footers; refuses torn files and mixed types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    kinds: dict[str, dict[str, list[str]]] = {}
    for name in names:
        try:
            with pq.ParquetFile(name) as file:
                rows += file.metadata.num_rows
                fields = [(field.name, str(field.type)) for field in file.schema_arrow]
        except (pa.ArrowException, OSError):
            raise BadTrace(name, "is not a whole Parquet file") from None
        for field, kind in fields:
            kinds.setdefault(field, {}).setdefault(kind.removeprefix("large_"), []).append(name)
    for field, found in kinds.items():
        if len(found) > 1:
            told = " and ".join(f"{kind} in {len(found[kind])}" for kind in sorted(found))
            odd = min(found.values(), key=lambda names: (len(names), names))[0]
            raise BadTrace(odd, f"column {field!r} has mixed types: {told} of {len(names)} files")
        if (held := sum(map(len, found.values()))) < len(names):
            lacking = sorted(set(names) - {name for group in found.values() for name in group})
            raise BadTrace(
                lacking[0], f"lacks column {field!r}, which {held} of {len(names)} files have"
            )
    return rows
