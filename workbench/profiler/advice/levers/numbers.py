"""What is computed with: the precision of a model, and what an optimizer remembers."""

from __future__ import annotations

from workbench.profiler.advice.levers.change import Change
from workbench.profiler.advice.levers.registry import Proposal, lever
from workbench.profiler.advice.levers.situation import Situation

# Products in half take half the cycles of the matrix unit and of the exchange at best; other work gains less.
HALF_CYCLES = 0.65


@lever("half_precision", "half precision", doubt=(0.15, 0.2))
def half_precision(situation: Situation) -> Proposal:
    """The whole model in float16, or mixed: computed in float16 with weights in float32.

    Estimate: float variables live at the peak take half their bytes; mixed, those that come and go.
    """
    if situation.mode not in ("training", "inference") or situation.fixed_inputs:
        return (), "the types are given by the inputs"
    if situation.has_half():
        return (), "the model is in half precision already"
    passing = situation.passing
    wide = int(passing["bytes"][passing["dtype"] == "float32"].sum())
    whole = Change(
        lever="half_precision",
        title="the model in float16",
        arguments=(("precision", "float16"),),
        estimated_bytes=situation.left(situation.live_bytes(dtype="float32") / 2),
        slower=HALF_CYCLES,
        numbers="any",
        effect="Everything is computed and kept in half precision: it rounds to half.",
        to="float16",
    )
    mixed = Change(
        lever="half_precision",
        title="the model in mixed_float16",
        arguments=(("precision", "mixed_float16"),),
        estimated_bytes=situation.left(wide / 2),
        slower=HALF_CYCLES,
        numbers="any",
        effect="Layers compute in half precision and round to half; weights stay in float32.",
        to="mixed",
    )
    return (whole, mixed), ""


@lever("fewer_slots", "an optimizer that remembers less", doubt=(0.1, 0.05))
def fewer_slots(situation: Situation) -> Proposal:
    """Another optimizer: Lion with one slot for each parameter, SGD with none. Estimate: the state that goes.

    Tried where it is named, or where nothing else fits: it learns something else.
    """
    if situation.mode != "training" or "optimizer" not in situation.kinds:
        return (), "the optimizer keeps no state"
    state, weights = situation.whole_bytes("optimizer"), situation.whole_bytes("parameter")
    kept = situation.live_bytes("optimizer")
    ways = [("lion", 1, 0.5), ("sgd", 0, 1.0)] if state > 1.5 * weights else [("sgd", 0, 1.0)]
    return tuple(
        Change(
            lever="fewer_slots",
            title=f"the optimizer {name}, with {slots} {'slot' if slots == 1 else 'slots'} a parameter",
            arguments=(("optimizer", name),),
            estimated_bytes=situation.left(kept * freed),
            slower=0.98,
            numbers="any",
            effect="It is another rule of learning, with Keras' settings of it: choose its learning rate.",
            steps=steps,
        )
        for steps, (name, slots, freed) in enumerate(ways, 1)
    ), ""
