"""Small profiles written down by hand.

`handmade_profile()`: a training step on one IPU of 16 tiles, a loop of three micro-batches.
`handmade_profile(fits=False)`: the same on tiles that are too small. `handmade_pipeline()`: two IPUs, two stages, four
micro-batches.
"""

from __future__ import annotations

from typing import Any

from tests.profiler.builder import TILES, Builder, spread
from workbench.profiler.profile import Profile

CODE = (
    "import keras",
    "",
    "model = keras.Sequential([",
    '    keras.layers.Dense(100, activation="relu", name="dense_1"),',
    '    keras.layers.Dense(10, name="dense_2"),',
    "])",
)

STAGES = ("stages = [", '    Stage(name="stage_0"),', '    Stage(name="stage_1"),', "]")


def handmade_profile(*, fits: bool = True) -> Profile:
    """One IPU of 16 tiles; tile 3 holds the bias of the first layer too, so it is the fullest."""
    build = Builder("hand-made mlp", bytes_per_tile=16_384 if fits else 6_000)
    build.meta["sources"] = {"model.py": {"name": "model.py", "stretches": [[1, list(CODE)], [40, ["print(model)"]]]}}
    first_four = range(4)
    uneven = [300] * TILES
    uneven[3] = 600
    kernel_1 = build.variable("dense_1/kernel", "parameter", spread(32_000))
    bias_1 = build.variable("dense_1/bias", "parameter", spread(400, [3]))
    kernel_2 = build.variable("dense_2/kernel", "parameter", spread(6_400))
    momentum = build.variable("dense_1/kernel/momentum", "optimizer", spread(32_000), layer="dense_1")
    zero = build.variable("constants/zero", "constant", spread(64, [0]), layer="")
    images = build.variable("images", "input", spread(12_800), lives=[(0, 10)])
    labels = build.variable("labels", "input", spread(16, [1]), lives=[(0, 7)], dtype="int32")
    copied = build.variable("dense_1/kernel copy", "temporary", spread(16_000), lives=[(2, 3)], layer="dense_1")
    out_1 = build.variable("dense_1/out", "activation", spread(6_400), lives=[(3, 10)], interleaved=True)
    relu = build.variable("dense_1/relu", "activation", spread(6_400), lives=[(4, 8)])
    partials = build.variable("dense_2/partials", "temporary", spread(3_200, first_four), lives=[(6, 6)])
    out_2 = build.variable("dense_2/out", "activation", spread(160, first_four), lives=[(6, 7)])
    loss = build.variable("loss", "activation", spread(4, [0]), lives=[(7, 12)], shape="()", layer="loss")
    grad_2 = build.variable("dense_2/kernel grad", "gradient", spread(6_400), lives=[(8, 11)], layer="dense_2")
    grad_1 = build.variable("dense_1/kernel grad", "gradient", spread(32_000), lives=[(10, 11)], layer="dense_1")
    build.footprint["vertex_code"][0] = 512
    build.footprint["vertex_instance_state"][0] = 96
    build.footprint["internal_exchange_code"][0] = [64 + 8 * tile for tile in range(TILES)]
    build.footprint["control_code"][0] = 128
    build.footprint["stack"][0] = 240
    loop = {"parent": "train/micro_batches", "times": 3}
    back = {**loop, "direction": "backward"}
    even = [400] * TILES
    build.step("StreamCopy", "images/copy", 1_000, received=spread(12_816), writes=[images, labels], layer="")
    build.step("Sync", "sync", 100)
    build.step(
        "DoExchange",
        "dense_1/exchange",
        1_040,
        sent=spread(16_000),
        received=spread(16_000),
        reads=[kernel_1],
        writes=[copied],
        operator="dense_1 matmul",
        source="model.py:4",
        **loop,
    )
    build.step(
        "OnTileExecute",
        "dense_1/matmul",
        uneven,
        reads=[images, copied, bias_1],
        writes=[out_1],
        operator="dense_1 matmul",
        source="model.py:4",
        **loop,
    )
    build.step("OnTileExecute", "dense_1/relu", 50, reads=[out_1], writes=[relu], source="model.py:4", **loop)
    build.step("DoExchange", "dense_2/exchange", 140, sent=spread(1_600), received=spread(1_600), reads=[relu], **loop)
    build.step(
        "OnTileExecute",
        "dense_2/matmul",
        spread(1_600, first_four),
        reads=[relu, kernel_2],
        writes=[partials, out_2],
        operator="dense_2 matmul",
        source="model.py:5",
        **loop,
    )
    build.step("OnTileExecute", "loss/softmax", spread(90, [0]), reads=[out_2, labels, zero], writes=[loss], **loop)
    build.step("OnTileExecute", "dense_2/grad", even, reads=[relu], writes=[grad_2], source="model.py:5", **back)
    build.step("DoExchange", "dense_1/exchange grad", 240, sent=spread(3_200), received=spread(3_200), **back)
    build.step(
        "OnTileExecute",
        "dense_1/grad",
        even,
        reads=[images, out_1],
        writes=[grad_1],
        source="model.py:4",
        **back,
    )
    build.step(
        "OnTileExecute",
        "sgd/update",
        200,
        reads=[grad_1, grad_2, momentum],
        writes=[kernel_1, kernel_2, momentum],
        direction="update",
        layer="dense_1",
    )
    build.step("StreamCopy", "loss/copy", 500, sent=spread(4, [0]), reads=[loss])
    build.timeline = [{"ipu": 0, "position": step, "step": step} for step in range(13)]
    trace = {
        "entry": [
            "sequence",
            "train",
            [
                ["step", 0],
                ["step", 1],
                ["repeat", "micro_batches", 3, ["call", "micro_batch", "micro batch", 0, None, "", None]],
                ["step", 11],
                ["step", 12],
            ],
        ],
        "functions": {"micro_batch": ["sequence", "micro_batch", [["step", step] for step in range(2, 11)]]},
    }
    # Once: host 1,000 and 500, sync 100, update 200. Three times: exchange 1,420, compute 600 + 50 + 400 + 90 + 800.
    breakdown = {"compute": 3 * 1_940 + 200, "exchange": 3 * 1_420, "sync": 100, "host": 1_500}
    build.meta["total_cycles"] = sum(breakdown.values())
    return build.profile(
        trace,
        cycle_breakdown=[{"ipu": 0, "cause": cause, "cycles": cycles} for cause, cycles in breakdown.items()],
        operators=_operators(),
        unmodelled=[] if fits else [{"primitive": "sort", "count": 2, "layer": "dense_2"}],
    )


def _operators() -> list[dict[str, Any]]:
    # Utilisation: flops / (cycles x 2,048 flops a cycle over the IPU), both over the three runs.
    rows = [
        ("dense_1", 1_920_000, 4_920, 2_048, 16_000, "1 x 16 x 1 split, AMP"),
        ("dense_2", 38_400, 1_200, 1_024, 3_200, "1 x 4 x 1 split, MAC"),
    ]
    return [
        {
            "name": f"{layer} matmul",
            "layer": layer,
            "direction": "forward",
            "op": "matmul",
            "flops": flops,
            "cycles": cycles,
            "utilisation": flops / (cycles * 2_048),
            "code_bytes": code,
            "temporary_bytes": temporary,
            "plan": plan,
            "plan_cycles": 0,
            "body": "",
        }
        for layer, flops, cycles, code, temporary, plan in rows
    ]


def handmade_pipeline() -> Profile:
    """Two IPUs, a stage on each, four micro-batches: all forward columns, then all backward ones."""
    build = Builder("hand-made pipeline", ipus=2)
    build.meta["layer_lines"] = {"stage_0": "stages.py:2", "stage_1": "stages.py:3"}
    build.meta["sources"] = {"stages.py": {"name": "Cell In[7]", "stretches": [[1, list(STAGES)]]}}
    micro_batches = 4
    weights = [build.variable(f"stage_{ipu}/kernel", "parameter", spread(48_000), ipu=ipu) for ipu in (0, 1)]
    stash = build.variable("stage_0/stash", "stash", spread(25_600), lives=[(1, 6)], layer="stage_0")
    build.variable("stage_0/out", "activation", spread(6_400), lives=[(1, 2)], layer="stage_0")
    build.variable("stage_1/in", "activation", spread(6_400), ipu=1, lives=[(0, 4)], layer="stage_1")
    build.variable("stage_1/out", "activation", spread(1_600), ipu=1, lives=[(2, 4)], layer="stage_1")
    lives = ([(5, 7)], [(3, 6)])
    grads = [
        build.variable(f"stage_{ipu}/grad", "gradient", spread(48_000), ipu=ipu, lives=lives[ipu]) for ipu in (0, 1)
    ]
    for name, size in (("vertex_code", 1_024), ("control_code", 256), ("stack", 120)):
        build.footprint[name][:] = size
    build.step("StreamCopy", "images/copy", 600, received=spread(6_400))
    for ipu, direction, kind, compute, times in (
        (0, "forward", "fwd", 500, micro_batches),
        (1, "forward", "fwd", 500, micro_batches),
        (1, "backward", "bwd", 900, micro_batches),
        (0, "backward", "bwd", 900, micro_batches),
    ):
        common = {"ipu": ipu, "stage": ipu, "direction": direction, "times": times, "layer": f"stage_{ipu}"}
        moved = {"sent": spread(3_200), "received": spread(3_200)}
        build.step("DoExchange", f"stage_{ipu}/{kind} exchange", 100, **moved, **common)
        build.step("OnTileExecute", f"stage_{ipu}/{kind}", compute, reads=[weights[ipu], stash], **common)
    build.step("GlobalExchange", "activations/copy", 200, to_ipu=1, times=4, layer="stage_0", direction="forward")
    build.step("GlobalExchange", "gradients/copy", 200, ipu=1, to_ipu=0, times=4, layer="stage_1", direction="backward")
    for ipu in (0, 1):
        more = {"ipu": ipu, "direction": "update", "layer": f"stage_{ipu}", "stage": ipu}
        build.step("OnTileExecute", f"stage_{ipu}/update", 150, reads=[grads[ipu]], writes=[weights[ipu]], **more)
    # Static steps: 0 host; 1, 2 fwd of 0; 3, 4 fwd of 1; 5, 6 bwd of 1; 7, 8 bwd of 0; 9, 10 copies; 11, 12 updates.
    orders = ([0, 1, 2, 9, 10, 7, 8, 11], [9, 3, 4, 5, 6, 10, 12])
    build.timeline = [
        {"ipu": ipu, "position": place, "step": step}
        for ipu, order in enumerate(orders)
        for place, step in enumerate(order)
    ]
    trace = {"entry": _pipeline_entry(micro_batches), "functions": _pipeline_functions()}
    # A column: 600 forward, 1,000 backward. Five columns of each, a copy after the first four, updates together.
    total = 600 + 5 * 600 + 4 * 200 + 5 * 1_000 + 4 * 200 + 150
    build.meta["total_cycles"] = total
    build.meta["samples_per_call"] = 16
    build.meta["pipeline"] = {
        "stages": 2,
        "micro_batches": micro_batches,
        "schedule": "Grouped",
        "recomputation": False,
    }
    breakdown = [
        {
            "host": 600,
            "exchange": 800,
            "compute": 4 * 1_400 + 150,
            "inter_ipu": 1_600,
            "idle_drain": 600,
            "idle_fill": 1_000,
        },
        {"idle_wait_host": 600, "exchange": 800, "compute": 4 * 1_400 + 150, "inter_ipu": 1_600, "idle_fill": 600},
    ]
    breakdown[1]["idle_drain"] = 1_000
    stages = [
        {
            "stage": ipu,
            "ipu": ipu,
            "compute_cycles": 5_750,
            "exchange_cycles": 800,
            "copy_cycles": 1_600,
            "idle_cycles": sum(cycles for cause, cycles in breakdown[ipu].items() if cause.startswith("idle_")),
            "memory_bytes": 48_000 + TILES * 1_400 + (25_600 + 48_000 if ipu == 0 else 48_000 + 8_000),
            "stash_bytes": 25_600 if ipu == 0 else 0,
        }
        for ipu in (0, 1)
    ]
    rows = [
        {"ipu": ipu, "cause": cause, "cycles": cycles}
        for ipu, found in enumerate(breakdown)
        for cause, cycles in found.items()
    ]
    return build.profile(trace, cycle_breakdown=rows, stages=stages)


def _pipeline_functions() -> dict[str, Any]:
    def body(*steps: int) -> list[Any]:
        return ["sequence", "", [["step", step] for step in steps]]

    stages = {"fwd0": body(1, 2), "fwd1": body(3, 4), "bwd1": body(5, 6), "bwd0": body(7, 8)}
    return {**stages, "copy_activations": ["step", 9], "copy_gradients": ["step", 10]}


def _pipeline_entry(micro_batches: int) -> list[Any]:
    def call(kind: str, stage: int, micro_batch: int) -> list[Any]:
        direction = {"fwd": "forward", "bwd": "backward"}[kind]
        return ["call", f"{kind}{stage}", f"stage {stage} {kind}", stage, stage, direction, micro_batch]

    children: list[Any] = [["step", 0]]
    for kind, early, copy in (("fwd", 0, "copy_activations"), ("bwd", 1, "copy_gradients")):
        for column in range(micro_batches + 1):
            phase = "fill" if column == 0 else "drain" if column == micro_batches else "steady"
            branches = [
                call(kind, stage, column - (stage != early))
                for stage in (0, 1)
                if 0 <= column - (stage != early) < micro_batches
            ]
            children.append(["overlap", f"{kind} column {column}", phase, branches])
            if column < micro_batches:
                children.append(["call", copy, copy, None, None, "", None])
    updates = [["step", 11], ["step", 12]]
    return ["sequence", "train", [*children, ["overlap", "update", "steady", updates]]]
