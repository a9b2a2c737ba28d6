"""A program from a file calls only what ours call, and takes and gives what the file says."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError
from workbench.ipu._files import executables

X = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], dtype="float32")
SPEC = jax.ShapeDtypeStruct((3, 3), "float32")
CALLING: dict[str, Callable[[Any], Any]] = {
    "cholesky": jnp.linalg.cholesky,
    "qr": lambda x: jnp.linalg.qr(x)[1],
    "solve": lambda x: jnp.linalg.solve(x, x),
    "nothing": lambda x: x @ x + 1,
}


def saved(function: Callable[[Any], Any], folder: Path) -> Path:
    program = wb.compile(function, SPEC, target=wb.target("ipu2", tiles_per_ipu=2))
    return executables.save_executable(program, folder / "program.wbexec")


def exported(function: Callable[[Any], Any], *specs: Any) -> bytes:
    return bytes(jax.export.export(jax.jit(function))(*(specs or (SPEC,))).mlir_module_serialized)


def calling(target: str) -> bytes:
    """A program of the right types that calls `target`."""
    made = jax.export.export(
        jax.jit(lambda x: jax.ffi.ffi_call(target, jax.ShapeDtypeStruct((3, 3), "float32"))(x)),
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(target)],
    )(SPEC)
    return bytes(made.mlir_module_serialized)


def changed(path: Path, **members: Any) -> Path:
    """The file with other members, and with the checksums that go with them: the work of somebody who means it."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    manifest = {**json.loads(held.pop("manifest.json")), **members.pop("manifest", {})}
    names = {"program": "program.stablehlo", "signature": "signature.json"}
    for name, value in members.items():
        held[names[name]] = value if isinstance(value, bytes) else json.dumps(value).encode()
    manifest["checksums"] = {name: hashlib.sha256(raw).hexdigest() for name, raw in held.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in {"manifest.json": json.dumps(manifest).encode(), **held}.items():
            archive.writestr(name, raw)
    return path


@pytest.mark.parametrize("name", CALLING)
def test_what_ours_call_is_called(name: str, tmp_path: Path) -> None:
    found = executables.load_executable(saved(CALLING[name], tmp_path))
    np.testing.assert_allclose(found.run(X)[0], CALLING[name](X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "nosuch", "lapack_spotrf", "__gpu$xla"])
def test_other_calls_are_refused_before_anything_runs(target: str, tmp_path: Path) -> None:
    path = changed(saved(CALLING["nothing"], tmp_path), program=calling(target))
    with pytest.raises(InputError, match=r"its program calls '.*', which none of ours calls"):
        executables.load_executable(path)


def test_a_call_inside_a_loop_is_seen(tmp_path: Path) -> None:
    def looped(x: Any) -> Any:
        call = jax.ffi.ffi_call("hidden", jax.ShapeDtypeStruct((3, 3), "float32"))
        return jax.lax.fori_loop(0, 3, lambda _, held: call(held), x)

    checks = [jax.export.DisabledSafetyCheck.custom_call("hidden")]
    program = jax.export.export(jax.jit(looped), disabled_checks=checks)(SPEC).mlir_module_serialized
    with pytest.raises(InputError, match="calls 'hidden'"):
        executables.load_executable(changed(saved(CALLING["nothing"], tmp_path), program=bytes(program)))


OTHER = [[[3, 3], "float32"]]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"program": exported(lambda x: x[0])}, "takes or gives other arrays than its signature"),
        ({"program": exported(lambda x: x, jax.ShapeDtypeStruct((2, 2), "float32"))}, "than its signature"),
        ({"program": exported(lambda x: x, jax.ShapeDtypeStruct((3, 3), "float16"))}, "than its signature"),
        ({"signature": {"takes": OTHER, "gives": OTHER, "read": [1]}}, "reads arguments that there are not"),
        ({"signature": {"takes": [], "gives": OTHER, "read": []}}, "other arrays than its program"),
        ({"signature": {"takes": OTHER, "gives": [], "read": [0]}}, "other arrays than its program"),
        ({"signature": {"takes": [[[-1], "float32"]], "gives": OTHER, "read": [0]}}, "array of shape"),
        ({"signature": []}, "is no executable"),
        ({"program": b"ML\xefR"}, "is no executable"),
        ({"program": b""}, "is no executable"),
        ({"manifest": {"order": []}}, "other arrays than its program"),
        ({"manifest": {"order": ["nosuch"]}}, "is no executable"),
        ({"manifest": {"inputs": []}}, "other arrays than its program"),
        ({"manifest": {"outputs": [["a", "b"]]}}, "is no executable"),
        ({"manifest": {"feeds": [["q", False, 10**12, []]]}}, "is asked"),
        ({"manifest": {"version": True}}, "its manifest is none"),
        ({"manifest": {"version": 1}}, "written by an older workbench"),
        ({"manifest": {"version": 99}}, "written by a newer workbench"),
    ],
    ids=str,
)
def test_members_that_do_not_go_together_are_refused(members: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = changed(saved(CALLING["nothing"], tmp_path), **members)
    with pytest.raises(InputError, match=told):
        executables.load_executable(path)


def test_a_member_of_another_file_is_seen(tmp_path: Path) -> None:
    path = saved(CALLING["nothing"], tmp_path)
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    held["program.stablehlo"] = exported(lambda x: x - 1)  # of equal types
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in held.items():
            archive.writestr(name, raw)
    with pytest.raises(InputError, match=r"its members are not those that were written: program\.stablehlo"):
        executables.load_executable(path)
