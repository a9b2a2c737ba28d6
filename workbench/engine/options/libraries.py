"""Options that PopLibs takes as text in a `poplar_options` dictionary, key by key, and what goes with them."""

# Keys, defaults and bounds: graphcore/poplibs@7eac0f26 lib/poplin/ConvOptions.hpp and .cpp:113-153,
# lib/poplin/MatMul.cpp:57-152, lib/popops/DynamicSlice.cpp:318-347, lib/popnn/Pooling.cpp:92-97.

from __future__ import annotations

from workbench.engine.options.declaration import option

_PLANNER = "engine/planner"
_SLICES = "engine/ops/gather.py"
_NOT_HERE = "it constrains PopLibs' search for a plan, of which the parts that decide cost are modelled"
# lib/poplin/Convolution.cpp:3099-3114: a result in which some dimension is grouped stays where it is.
_TOGETHER = "the plans here leave neighbours of a result together on a tile, and such a result stays where it is"
_GRAPH_KNOWS = "the graph says which pass an operation belongs to"


def _key(group: str, key: str, default: object, type_: type, doc: str, **more: object) -> None:
    option(f"{group}.poplar_options.{key}", default, type_, doc, kind="key", **more)  # type: ignore[arg-type]


def _recorded(group: str, key: str, default: object, type_: type, doc: str, reason: str) -> None:
    _key(group, key, default, type_, doc, effect="recorded", reason=reason)


def _dictionary(group: str, what: str) -> None:
    option(
        f"{group}.poplar_options",
        (),
        dict,
        f"PopLibs options of {what}, as texts by key; each key is an option of its own.",
        kind="dictionary",
    )


option(
    "matmuls.clear_pass_type",
    False,
    bool,
    "Plan each matmul as if it went forward, without regard to the pass it belongs to.",
    read_by=_PLANNER,
)
_FORM_PLACE = {"matmuls": 1, "convolutions": 2}
for _group, _label in (("convolutions", "convolution"), ("matmuls", "matmul")):
    _dictionary(_group, f"every {_label}")
    _key(
        _group,
        "availableMemoryProportion",
        0.6,
        float,
        f"Share of a tile's memory that the plan of one {_label} may take for temporaries; 0 asks for the least. "
        "One number, or one for each IPU of a replica in stages. PopLibs sets no upper bound; above 10 is taken for a "
        "slip here.",
        read_by=_PLANNER,
        minimum=0.0,
        maximum=10.0,
        many=True,
        source="poplibs@7eac0f26 lib/poplin/ConvOptions.hpp:37",
        form_label=f"availableMemoryProportion ({_group})",
        form_place=_FORM_PLACE[_group],
    )
    _key(
        _group,
        "partialsType",
        "float",
        str,
        f"Type in which a {_label} accumulates: half doubles the rate of half inputs and halves the partials.",
        read_by=_PLANNER,
        choices=("float", "half"),
        form_label=f"partialsType ({_group})",
        form_place=2 + _FORM_PLACE[_group],
    )
    _key(
        _group,
        "use128BitConvUnitLoad",
        False,
        bool,
        "Load the weights of the matrix unit 16 bytes a cycle; they must lie in interleaved memory.",
        read_by=_PLANNER,
    )
    _key(
        _group,
        "enableMultiStageReduce",
        True,
        bool,
        "Reduce deep partials in several exchanges: less code, more cycles.",
        read_by=_PLANNER,
    )
    _key(
        _group,
        "enableFastReduce",
        False,
        bool,
        "Reduce with a faster vertex, whose partials must be one block of interleaved memory.",
        read_by=_PLANNER,
    )
    _recorded(
        _group,
        "remapOutputTensor",
        True,
        bool,
        "Spread a result again where no neighbours in any of its dimensions lie together.",
        _TOGETHER,
    )
    _recorded(_group, "planConstraints", "", str, "Constraints on the plan, as JSON.", _NOT_HERE)
    _recorded(
        _group,
        "disableSRForAMPVertices",
        False,
        bool,
        "Leave stochastic rounding out of the matrix unit.",
        "results come from the host, which rounds after the whole operation",
    )

_GATHER = "results are modelled where the plan leaves them"
_key(
    "convolutions",
    "partialsType.interTile",
    None,
    str,
    "Type of the partials that travel between tiles; unset, that in which they were computed.",
    read_by=_PLANNER,
    choices=("float", "half"),
)
_recorded(
    "convolutions",
    "partialsType.interIPU",
    "float",
    str,
    "Type of the partials that travel between IPUs.",
    "no plan spans IPUs",
)
_recorded("convolutions", "pass", "NONE", str, "The pass a convolution belongs to.", _GRAPH_KNOWS)
_recorded(
    "convolutions",
    "planConstraintsOutputFilename",
    "",
    str,
    "Where PopLibs writes the plan it found.",
    "the plan is in the profile",
)
_recorded(
    "convolutions",
    "enableConvDithering",
    False,
    bool,
    "Start each convolution at a tile of its own.",
    "the published sources do not fix the start tile for a given convolution",
)
_recorded("convolutions", "disableTransformations", False, bool, "Plan without view transformations.", _NOT_HERE)
_recorded(
    "convolutions",
    "insertTransformsCycleCountProgs",
    False,
    bool,
    "Count the cycles of each transformation.",
    "every step has its cycles in the profile",
)
_recorded(
    "convolutions",
    "experimental.convTransformsEstimates",
    False,
    bool,
    "Estimate transformations by a formula.",
    _NOT_HERE,
)
_recorded("convolutions", "gatherConvOutput", False, bool, "Gather a result into one variable.", _GATHER)
_recorded(
    "convolutions", "experimental.slicVmac16", False, bool, "Use SLIC and VMAC vertices in groups of 16.", _NOT_HERE
)
_recorded(
    "convolutions", "enableTileLevelExpandDims", False, bool, "Try plans that expand dimensions on a tile.", _NOT_HERE
)

_recorded("matmuls", "fullyConnectedPass", "NONE", str, "The pass a matmul belongs to.", _GRAPH_KNOWS)
_recorded(
    "matmuls",
    "inputRHSIsPreArranged",
    False,
    bool,
    "The right operand is already in the plan's order.",
    "the layout of an operand follows from who made it",
)
_recorded("matmuls", "gatherOutput", False, bool, "Gather a result into one variable.", _GATHER)

_dictionary("slices", "every gather, scatter and embedding look-up")
_key(
    "slices",
    "availableMemoryProportion",
    0.6,
    float,
    "Share of a tile's memory that the plan of a look-up may take for temporaries.",
    read_by=_SLICES,
    minimum=0.0,
    maximum=1.0,
    source="poplibs@7eac0f26 include/popops/DynamicSlice.hpp:843",
)
_key(
    "slices",
    "partialType",
    None,
    str,
    "Type in which updates to one row are added; unset, the type of the table.",
    read_by=_SLICES,
    choices=("float", "half"),
)
_key(
    "slices",
    "indicesDistribution",
    "uniform",
    str,
    "How the indices spread over the table: evenly, or all on one row.",
    read_by=_SLICES,
    choices=("uniform", "onePoint"),
)
_key("slices", "indicesAreSorted", False, bool, "The indices of an update come in rising order.", read_by=_SLICES)
_key(
    "slices",
    "validateIndices",
    False,
    bool,
    "Stop the run at an index outside the table.",
    effect="numeric",
    read_by="engine/frontends/numbers/numerics.py",
)
for _flag, _what in (("usedForSlice", "looked up in"), ("usedForUpdate", "updated")):
    _recorded("slices", _flag, True, bool, f"The plan is for a table that is {_what}.", _GRAPH_KNOWS)
_recorded("slices", "operationForUpdate", "add", str, "How an update meets the row it changes.", _GRAPH_KNOWS)
_recorded("slices", "planConstraints", "", str, "Constraints on the plan, as JSON.", _NOT_HERE)
_recorded(
    "slices",
    "remapOutOfBoundIndices",
    False,
    bool,
    "Send indices outside the table to row 0.",
    "results come from the host, whose rule for such indices is kept",
)
_recorded("slices", "paddingIndexUsed", False, bool, "Row 0 is padding.", "the table of the model is taken as it is")
_recorded(
    "slices",
    "internal.alwaysIncludeBaseRearrangementCost",
    False,
    bool,
    "Count bringing the table into the plan's order.",
    _NOT_HERE,
)

_dictionary("pooling", "every pooling")
_key(
    "pooling",
    "poolUseIntrospectiveMapping",
    True,
    bool,
    "Follow the operand's own mapping when work is spread.",
    read_by="engine/ops/pooling.py",
)
_key(
    "pooling",
    "optimizeForSpeed",
    False,
    bool,
    "Sum windows by a convolution where that takes fewer cycles.",
    read_by="engine/ops/pooling.py",
)
