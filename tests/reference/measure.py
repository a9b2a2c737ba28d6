"""A measured example for each option: one value beside its default, compiled, on the first program that it changes."""

from __future__ import annotations

from typing import Any

PIPELINE = {"auto_select_ipus": 2, "pipeline.gradient_accumulation_steps": 8}
# By the words that say it: a ready model, sizes, arguments of the compile, and options it has beside the one measured.
PROGRAMS: dict[str, tuple[str, dict[str, int], dict[str, Any], dict[str, Any]]] = {
    "cnn, training, batch size 8, 64 tiles": ("cnn", {"image_size": 16}, {"batch_size": 8}, {}),
    "a Transformer layer, training, batch size 2, 64 tiles": (
        "transformer-encoder",
        {"layers": 1, "hidden": 128, "heads": 4, "sequence_length": 32},
        {"batch_size": 2},
        {},
    ),
    "four dense layers in two stages, 8 micro-batches of 4, 64 tiles": (
        "mlp",
        {"layers": 4},
        {"batch_size": 4, "stages": [0, 0, 0, 1, 1], "optimizer": "adam"},
        PIPELINE,
    ),
    "cnn on two replicas, training, batch size 8, 64 tiles": (
        "cnn",
        {"image_size": 16},
        {"batch_size": 8, "replicas": 2},
        {"auto_select_ipus": 2},
    ),
    "cnn, training, batch size 8, 16 tiles": (
        "cnn",
        {"image_size": 16},
        {"batch_size": 8},
        {"ipu_model.tiles_per_ipu": 16},
    ),
    "cnn in float16, training, batch size 32, 16 tiles": (
        "cnn",
        {"image_size": 16},
        {"batch_size": 32, "precision": "float16"},
        {"ipu_model.tiles_per_ipu": 16},
    ),
}
TILES = {"ipu_model.tiles_per_ipu": 64}


def compiled(program: str, changed: dict[str, Any], like: Any = None) -> Any:
    """One of the programs with options changed."""
    import workbench as wb
    from workbench.executable import compile_request, make_request
    from workbench.executable.configured import defaults
    from workbench.widgets.app.form.run import Frozen

    name, size, arguments, options = PROGRAMS[program]
    config = Frozen(defaults().with_values({**TILES, **options, **changed}))
    request = make_request(wb.ready(name, **size), config=config, **{"mode": "training", **arguments})
    return compile_request(request, None, like)


def example(name: str, bases: dict[str, Any]) -> dict[str, Any] | None:
    """What a value of an option changes: value, program, bytes of the fullest tile and cycles before and after; None
    where none of the values beside the default changes one of the programs."""
    from workbench.errors import WorkbenchError
    from workbench.executable.configured import found, neighbours, text_of
    from workbench.executable.reads import options_read

    declared = found(name)
    for program in PROGRAMS:
        base = bases.setdefault(program, compiled(program, {})) if program not in bases else bases[program]
        read = options_read(base) or {}
        if read.get(name) == "":
            continue
        for value in neighbours(declared, base.request.options.get(name)):
            try:
                after = compiled(program, {name: value}, base).profile
            except WorkbenchError:
                continue
            before = base.profile
            numbers = {"bytes": [before.max_tile_bytes, after.max_tile_bytes]}
            numbers["cycles"] = [before.total_cycles, after.total_cycles]
            if any(first != second for first, second in numbers.values()):
                return {"value": text_of(value), "program": program, **numbers}
    return None
