"""Executables in files: what a program takes and gives, its numbers as StableHLO, its variables and its profile.

A zip archive of `manifest.json`, `program.stablehlo` with `signature.json` (JAX's portable form), one `.npy` for each
variable, and `profile.wbprofile`. Nothing in it is code of Python. Elements of infeeds are given to `run`, what went to
outfeeds is in `.outfeeds`. A program that has a function of the host called, or that asks a feed in a loop of unknown
length, has no portable form: it is saved without its numbers, and says so when it is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from workbench.base.arrays import read_array
from workbench.base.files import made_folder, whole_file, write_archive
from workbench.base.text import short
from workbench.base.units import things_text
from workbench.engine.frontends.describe.checks import check_array
from workbench.engine.frontends.describe.source import ArraySpec
from workbench.errors import InputError, ProfileFileError
from workbench.ipu._feeds import elements_of, to_arrays
from workbench.ipu._files.portable import Feed, feeds_of, portable
from workbench.ipu._files.programs import check_program, types_of
from workbench.profiler.storage import profile_bytes, profile_from

VERSION = 2  # since 2 with the checksums of the other members
PROFILE = "profile.wbprofile"


@dataclass(slots=True, eq=False)
class SavedExecutable:
    """An executable read from a file: `.profile`, `.variables` by name, and `.run(*inputs)`.

    `feeds` are its queues by name; `outfeeds` holds what the last run gave each of them, along a first dimension.
    """

    name: str
    profile: Any
    variables: dict[str, Any]
    inputs: tuple[ArraySpec, ...]
    order: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    program: Any = None
    feeds: tuple[Feed, ...] = ()
    outfeeds: dict[str, list[np.ndarray[Any, Any]]] = field(default_factory=dict)

    def run(self, *values: Any, feeds: Any = None) -> list[np.ndarray[Any, Any]]:
        """One call: the outputs, in order. What the program updates is kept here, in `.variables`.

        `feeds`: a dataset for each infeed by its name, or the dataset itself where there is one infeed.
        """
        if self.program is None:
            raise InputError(
                f"the executable {self.name!r} was saved without its numbers, since it talks to the host as it runs",
                todo="run the program it was compiled from",
            )
        if len(values) != len(self.inputs):
            raise InputError(f"run was called with {things_text(len(values), 'array')}", expected=f"{len(self.inputs)}")
        given = iter([check_array(spec, value) for spec, value in zip(self.inputs, values, strict=True)])
        arguments = [self.variables[name] if name else next(given) for name in self.order]
        results = list(self.program.call(*arguments, *self._elements(feeds)))
        made, given = results[: len(self.outputs)], iter(results[len(self.outputs) :])
        for (_, updated), value in zip(self.outputs, made, strict=True):
            if updated:
                self.variables[updated] = value
        for feed in self.feeds:
            if feed.gives:
                count = int(next(given))
                self.outfeeds[feed.name] = [np.asarray(next(given))[:count] for _ in feed.types]
        return [np.asarray(value) for (_, updated), value in zip(self.outputs, made, strict=True) if not updated]

    def _elements(self, feeds: Any) -> list[np.ndarray[Any, Any]]:
        """What every infeed gives in one call, its elements behind each other."""
        wanted = [feed for feed in self.feeds if not feed.gives]
        named = dict(feeds) if isinstance(feeds, Mapping) else {feed.name: feeds for feed in wanted[:1] if feeds}
        missing = [feed.name for feed in wanted if feed.name not in named]
        if missing:
            raise InputError(
                f"run was called without the elements of {', '.join(missing)}",
                expected=f"feeds={{{', '.join(f'{feed.name!r}: dataset' for feed in wanted)}}}",
            )
        return [array for feed in wanted for array in _stacked(feed, named[feed.name])]


def _stacked(feed: Feed, dataset: Any) -> list[np.ndarray[Any, Any]]:
    """The elements of one call, each array of them stacked; an `InputError` for too few or other shapes."""
    elements = [jax.tree_util.tree_leaves(to_arrays(each)) for each in islice(elements_of(dataset), feed.count)]
    if len(elements) < feed.count:
        raise InputError(
            f"the dataset of {feed.name} ended after {things_text(len(elements), 'element')}",
            expected=f"{feed.count} for one call",
        )
    columns = list(zip(*elements, strict=True))
    shapes = [tuple(np.shape(part) for part in column) for column in columns]
    if [set(each) for each in shapes] != [{shape} for shape, _ in feed.types]:
        raise InputError(
            f"elements of {feed.name} have the shapes {shapes[0][:1] if shapes else ()}",
            expected=", ".join(str(shape) for shape, _ in feed.types),
        )
    return [np.stack(column).astype(dtype) for column, (_, dtype) in zip(columns, feed.types, strict=True)]


def save_executable(executable: Any, path: Path) -> Path:
    """Write an executable to a file."""
    source = executable.traced
    if source is None:
        raise InputError("a program made by hand has no executable to save", todo="save its profile")
    names = [_unique(number, item.name) for number, item in enumerate(source.graph.inputs)]
    held = {name: each for name, each in zip(names, source.variables, strict=False) if _is_kept(each)}
    order = [name if name in held else "" for name in names[: len(source.variables)]]
    outputs = [(each.name, names[each.updates] if each.updates is not None else "") for each in source.graph.outputs]
    values = {} if source.lazy else {name: np.asarray(each.value) for name, each in held.items()}
    feeds = [] if source.lazy else _feeds(source)
    members = _members(executable, source, order, held, feeds, values)
    manifest = {
        "version": VERSION,
        "checksums": {name: hashlib.sha256(raw).hexdigest() for name, raw in members.items()},
        "name": executable.profile.name,
        "order": order,
        "outputs": outputs,
        "inputs": [[spec.name, list(spec.shape), spec.dtype] for spec in source.specs],
        "variables": {name: str(value.dtype) for name, value in values.items()},
        "feeds": [[each.name, each.gives, each.count, each.types] for each in feeds or ()],
    }
    made_folder(path.parent)
    with whole_file(path) as file:
        write_archive(file, [("manifest.json", json.dumps(manifest)), *members.items()])
    return path


def _members(
    executable: Any, source: Any, order: list[str], held: dict[str, Any], feeds: Any, values: Mapping[str, Any]
) -> dict[str, bytes]:
    """Everything of the archive but its manifest, by name."""
    found: dict[str, bytes] = {}
    program = None if source.lazy or feeds is None else _portable(source, order, held, feeds)
    if program is not None:
        found["program.stablehlo"] = bytes(program.mlir_module_serialized)
        found["signature.json"] = json.dumps(_signature(program)).encode("utf-8")
    for number, value in enumerate(values.values()):
        buffer = io.BytesIO()
        np.save(buffer, value.view(np.uint16) if value.dtype == jnp.bfloat16 else value, allow_pickle=False)
        found[f"variables/{number}.npy"] = buffer.getvalue()
    found[PROFILE] = profile_bytes(executable.profile)
    return found


def _is_kept(variable: Any) -> bool:
    """Whether an entry parameter has a value between runs: no input of a call, no elements of a pipeline's infeed."""
    return variable is not None and not getattr(variable, "from_host", False)


def _unique(number: int, name: str) -> str:
    return f"{number}:{name}"


def _feeds(source: Any) -> list[Feed] | None:
    """The queues of a program; None when it talks to the host otherwise, from stages, or from several replicas."""
    if any(each is not None and not _is_kept(each) for each in source.variables):
        return None
    if source.jaxpr is None or not source.jaxpr.effects:
        return []
    return None if source.graph.meta.get("replicas", 1) > 1 else feeds_of(source.jaxpr)


def _portable(source: Any, order: list[str], held: dict[str, Any], feeds: Sequence[Feed]) -> Any:
    """The program in JAX's portable form; None for one that has none."""
    specs = iter(source.specs)
    types = []
    for name in order:
        array = held[name].value if name else next(specs)
        types.append(jax.ShapeDtypeStruct(tuple(array.shape), jnp.dtype(array.dtype)))
    count = len(types)
    taken = [feed for feed in feeds if not feed.gives]
    types += [jax.ShapeDtypeStruct((feed.count, *shape), dtype) for feed in taken for shape, dtype in feed.types]

    def whole(*arrays: Any) -> tuple[Any, ...]:
        if not feeds:
            return tuple(source.compute(list(arrays)))
        rest = iter(arrays[count:])
        elements = [[next(rest) for _ in feed.types] for feed in taken]
        return tuple(portable(source.jaxpr, feeds)(arrays[:count], elements))

    traced = jax.jit(whole)
    try:
        return jax.export.export(traced)(*types)
    except (NotImplementedError, ValueError):
        return None


def _signature(program: Any) -> dict[str, Any]:
    """Types of what a program takes and gives, and which of its arguments it reads."""
    return {
        "takes": [[list(each.shape), str(each.dtype)] for each in program.in_avals],
        "gives": [[list(each.shape), str(each.dtype)] for each in program.out_avals],
        "read": list(program.module_kept_var_idx),
    }


def _restore(module: bytes, signature: dict[str, Any]) -> Any:
    """A program from its StableHLO: an exported program of equal types, with this one's module in its place."""
    takes = [jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(dtype)) for shape, dtype in signature["takes"]]
    zeros = [(tuple(shape), jnp.dtype(dtype)) for shape, dtype in signature["gives"]]
    alike = jax.export.export(jax.jit(lambda *_: tuple(jnp.zeros(*each) for each in zeros)))(*takes)
    return replace(alike, mlir_module_serialized=module, module_kept_var_idx=tuple(signature["read"]))


def load_executable(path: str | Path) -> SavedExecutable:
    """Read an executable; a file that is none, or not whole, is an `InputError`."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"no executable {str(place)!r}")
    try:
        if not place.is_file():
            raise ValueError("it is no file")
        return _loaded(place)
    except _DAMAGE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"path is {short(str(path))}: {place.name} is no executable: {error}",
            expected="one written to serialization_output_folder",
        ) from error


MAX_BYTES = 512 << 20  # of all members unpacked; it is checked before anything is
# What reading a damaged or foreign archive raises.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, ProfileFileError, OSError, EOFError, MemoryError, RuntimeError),
    *(KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, NotImplementedError),
)


def _loaded(place: Path) -> SavedExecutable:
    with zipfile.ZipFile(place) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
        manifest = json.loads(archive.read("manifest.json"))
        _check_version(manifest, place)
        members = {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}
    sums = {name: hashlib.sha256(raw).hexdigest() for name, raw in members.items()}
    if sums != manifest["checksums"]:
        odd = sorted({name for name, _ in set(sums.items()) ^ set(manifest["checksums"].items())})
        raise ValueError(f"its members are not those that were written: {', '.join(odd)[:200]}")
    profile = profile_from(members[PROFILE])
    variables = {
        name: _restored(members[f"variables/{number}.npy"], dtype)
        for number, (name, dtype) in enumerate(manifest["variables"].items())
    }
    signature = json.loads(members["signature.json"]) if "program.stablehlo" in members else None
    found = _described(manifest, profile, variables)
    if signature is not None:
        _check_signature(found, signature)
        check_program(members["program.stablehlo"], signature)
        found.program = _restore(members["program.stablehlo"], signature)
    return found


def _check_version(manifest: Any, place: Path) -> None:
    version = manifest["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("its manifest is none")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise InputError(
            f"{place.name} was written by {age} workbench (file version {version})",
            expected=f"file version {VERSION}",
            todo="compile again with serialization_output_folder",
        )


def _described(manifest: Mapping[str, Any], profile: Any, variables: dict[str, Any]) -> SavedExecutable:
    """The executable of a manifest, without its program."""
    return SavedExecutable(
        name=manifest["name"],
        profile=profile,
        variables=variables,
        inputs=tuple(ArraySpec(name=name, shape=tuple(shape), dtype=kind) for name, shape, kind in manifest["inputs"]),
        order=tuple(manifest["order"]),
        outputs=tuple((name, updated) for name, updated in manifest["outputs"]),
        feeds=tuple(
            Feed(name=str(name), gives=bool(gives), count=_count(count), types=tuple(types_of(types)))
            for name, gives, count, types in manifest["feeds"]
        ),
    )


def _count(told: Any) -> int:
    if not isinstance(told, int) or isinstance(told, bool) or not 0 <= told < 2**31:
        raise ValueError(f"a feed is asked {told!r} times")
    return told


def _check_signature(found: SavedExecutable, signature: Mapping[str, Any]) -> None:
    """A `ValueError` for a program that takes or gives other arrays than the manifest has for it."""
    types = {name: (tuple(value.shape), str(value.dtype)) for name, value in found.variables.items()}
    inputs = iter([(spec.shape, str(jnp.dtype(spec.dtype))) for spec in found.inputs])
    takes = [types[name] if name else next(inputs, None) for name in found.order]
    gives: list[Any] = []
    for feed in found.feeds:
        stacked = [((feed.count, *shape), dtype) for shape, dtype in feed.types]
        (gives if feed.gives else takes).extend([((), "int32"), *stacked] if feed.gives else stacked)
    told, given = types_of(signature["takes"]), types_of(signature["gives"])
    count = len(found.outputs)
    updated = [(types[name], given[place]) for place, (_, name) in enumerate(found.outputs) if name]
    if takes != told or next(inputs, None) is not None or given[count:] != gives or len(given) < count:
        raise ValueError("its manifest has other arrays than its program takes or gives")
    if any(one != other for one, other in updated):
        raise ValueError("its program updates a variable with another shape or type")


def _restored(raw: bytes, dtype: str) -> Any:
    value = read_array(raw)
    return jnp.asarray(value.view(jnp.bfloat16) if dtype == "bfloat16" else value)


__all__ = ["SavedExecutable", "load_executable", "save_executable"]
