"""A vertex as PopLibs writes it (`popops::Fill<float>: out: n=1000`), as a name and arguments of `vertices.cycles`."""

from __future__ import annotations

import re
from typing import Any

Arguments = dict[str, Any]
SIGNATURE = re.compile(r"((?:popops|poplin|popnn|poprand)(?:::|\s)\w+)(?:<([^>]*)>)?([^:]*):?\s*(.*)", re.DOTALL)
PAIR = re.compile(r"(\w+)=([\w.]+)")
ROWS = {"one": 1, "two": 2, "three": 3}
TWO_TYPES = {"popops::Cast1D": ("from_type", "to_type"), "popops::Cast2D": ("from_type", "to_type")}
TYPES = ("float", "half", "int", "unsigned", "bool", "char", "short")


def parse_vertex(text: str) -> tuple[str, Arguments]:
    """Name and arguments; a text in no known form is a `ValueError`."""
    text = text.split(". Registered")[0].split("estimator of vertex ")[-1].strip()
    if text.startswith("dense dot product"):
        sizes = _numbers(text, vector_width=r"vectorWidth (\d+)", size=r"size (\d+)")
        return "poplin::denseDotProduct", _types(text) | sizes
    found = SIGNATURE.match(text)
    if not found:
        raise ValueError(f"no vertex in {text!r}")
    name = re.sub(r"\s", "::", found[1])
    if name in SPECIAL:
        return name, SPECIAL[name](text)
    template = [part.strip() for part in (found[2] or "").split(",")]
    fields = found[4] if found[2] or "=" in found[4] else text
    return name, _template(name, template, text) | _fields(name, fields or text)


def _template(name: str, parts: list[str], text: str) -> Arguments:
    """Arguments in the angle brackets, or written out behind a plain name."""
    found: Arguments = {}
    types = [part for part in parts if part.split(" ")[0] in TYPES]
    flags = [part == "true" for part in parts if part in ("true", "false")]
    for part in parts:
        if "OpType::" in part:
            found["op"] = part.rsplit("::", 1)[1]
    if name in TWO_TYPES:
        return found | dict(zip(TWO_TYPES[name], types, strict=True))
    if name.startswith("popops::ScaledAdd"):
        return dict(zip(("a_type", "b_type", "scale_type"), types, strict=True)) | {"memory_constraints": flags[0]}
    if types:
        found["type"] = types[0]
    elif written := re.search(r"\b(float|half|int)\b", text):
        found["type"] = written[1]
    if flags:
        found["lower"] = flags[0]
    return found


def _fields(name: str, text: str) -> Arguments:
    """`key=value` pairs with names in our spelling; rows of 2D vertices; the layout of a scaled add."""
    found: Arguments = {_snake(key): _value(value) for key, value in PAIR.findall(text)}
    if rows := re.search(r"rows (\d+(?:,\d+)*)", text):
        found["rows"] = [int(size) for size in rows[1].split(",")]
    if rows := re.search(r"(one|two|three) rows? of (\d+)", text):
        sizes = [int(rows[2])] * ROWS[rows[1]]
        found |= {"n": sizes[0]} if name == "popops::Select" else {"rows": sizes}
    if layout := re.search(r"layout (\w+)", text):
        found["layout"] = layout[1]
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def _types(text: str) -> Arguments:
    """`half acts/float partials`, `half acts, float partials` or `half/half`."""
    found = re.search(r"\b(half|float)(?: acts)?\s*[/,]\s*(half|float)\b", text)
    if not found:
        raise ValueError(f"no types in {text!r}")
    return {"in_type": found[1], "partials_type": found[2]}


def _numbers(text: str, **patterns: str) -> Arguments:
    found = {name: re.search(pattern, text) for name, pattern in patterns.items()}
    return {name: int(match[1]) for name, match in found.items() if match}


def _amp(text: str) -> Arguments:
    units = _numbers(text, conv_units=r"(\d+)\s*(?:conv )?units", weight_load_bytes_per_cycle=r"(\d+) B/cycle")
    counts = _numbers(
        text,
        positions=r"N=(\d+)",
        workers=r"(\d+) workers",
        conv_groups=r"convGroups=(\d+)",
        in_groups=r"inGroups=(\d+)",
        out_groups=r"outGroups=(\d+)",
        out_chans_per_group=r"outChansPerGroup=(\d+)",
    )
    return _types(text) | units | {"out_chans_per_group": units["conv_units"]} | counts


def _nx1(text: str) -> Arguments:
    kernel = re.search(r"kernel (\d+)x(\d+)", text)
    if not kernel:
        raise ValueError(f"no kernel in {text!r}")
    counts = _numbers(
        text,
        filter_height=r"filterHeight (\d+)",
        worklist_elements=r"(\d+)-element worklist",
        workers=r"(\d+) workers",
        in_groups=r"inGroups=(\d+)",
        out_groups=r"outGroups=(\d+)",
        conv_groups=r"convGroups=(\d+)",
        chans_per_group=r"chans per group (\d+)",
        conv_units=r"(\d+) units",
        weight_load_bytes_per_cycle=r"(\d+) B/cycle",
    )
    zeroing = "kernel zeroing excluded" not in text
    return _types(text) | {"kernel": [int(kernel[1]), int(kernel[2])], "kernel_zeroing": zeroing} | counts


def _hmac(text: str) -> Arguments:
    return _types(text) | _numbers(
        text,
        kernel=r"kernel (\d+)",
        workers=r"(\d+) workers",
        conv_size=r"conv size (\d+)",
        in_chans=r"inChans=(\d+)",
        out_chans=r"outChans=(\d+)",
    )


def _reduce_add(text: str) -> Arguments:
    types = {"out_type": r"out=(float|half)", "partials_type": r"partials type=(float|half)"}
    flags = {"single_input": r"singleInput=(\w+)", "constrain_partials": r"constrainPartials=(\w+)"}
    found: Arguments = {name: re.findall(pattern, text)[0] for name, pattern in (types | flags).items()}
    found |= {name: found[name] == "true" for name in flags}
    return found | _numbers(text, out_size=r"outSize=(\d+)", partials=r"partials=(\d+)")


def _reduce(text: str) -> Arguments:
    head = re.search(r"Reduce (\w+).*?: (float|half|int) (\w+)", text)
    if not head:
        raise ValueError(f"no reduction in {text!r}")
    found = _numbers(
        text,
        num_partials=r"numPartials=(\d+)",
        num_outputs=r"(?:numOutputs=|numOutputsM1 field=|(?=\d+ output))(\d+)",
        stride=r"stride=(\d+)",
        num_outer_strides=r"numOuterStrides=(\d+)",
        reductions=r"(\d+) reductions",
        out_elements=r"out (\d+) elems",
        partial_elements=r"one (\d+)-element partial",
    )
    return {"specialisation": head[1], "type": head[2], "op": head[3]} | found


SPECIAL = {
    "poplin::ConvPartial1x1Out": _amp,
    "poplin::ConvPartialnx1": _nx1,
    "poplin::ConvPartialHorizontalMac": _hmac,
    "poplin::ReduceAdd": _reduce_add,
    "popops::Reduce": _reduce,
}
