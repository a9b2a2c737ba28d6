"""The control program as a tree of nodes with their cycles."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pandas as pd

from workbench.base.units import cycles_text, some_text, things_text
from workbench.base.whole import whole
from workbench.profiler.profile import Profile
from workbench.profiler.registry import report
from workbench.profiler.report import Report
from workbench.profiler.timeline import TimedNode
from workbench.profiler.timeline.branches import Branch, Branches

_KINDS = {"sequence": "Sequence", "repeat": "Repeat", "call": "Call", "if": "If", "overlap": "Overlap"}


@report("program_tree")
@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramTree(Report):
    """Functions first, each stored once, then the entry. A call names its function and is not expanded."""

    kinds: ClassVar[tuple[str, ...]] = ("cycles",)
    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> ProgramTree:
        """The tree of a profile."""
        return cls(profile=profile)

    @cached_property
    def branches(self) -> Branches:
        """The executed program to look into, where calls show what they run and neighbours of a layer are folded."""
        return Branches(self.profile)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """A row per function that is called: `function, runs, cycles` of one run, `total_cycles` of all and their
        `share` of the program's cycles, which may overlap on several IPUs; the dearest first."""
        bodies, total = self.profile.timeline.functions, max(1, self.profile.total_cycles)
        rows = [
            (name, runs, bodies[name].cycles, runs * bodies[name].cycles, runs * bodies[name].cycles / total)
            for name, runs in self.branches.calls.items()
        ]
        found = pd.DataFrame(rows, columns=["function", "runs", "cycles", "total_cycles", "share"])
        return found.sort_values("total_cycles", ascending=False, kind="stable").reset_index(drop=True)

    def unfolded(self, levels: int) -> list[tuple[int, Branch]]:
        """The branches of the first levels in the order of the program, each with its level."""
        levels = whole("levels", levels, least=0)
        found: list[tuple[int, Branch]] = []
        todo = [(0, self.branches.root)]
        while todo:
            level, branch = todo.pop()
            found.append((level, branch))
            if level < levels:
                todo += [(level + 1, each) for each in reversed(self.branches.below(branch))]
        return found

    def to_branches(self, levels: int = 3) -> pd.DataFrame:
        """The branches of the first levels as a table: `level, kind, name, layer, direction, ipu, runs, cycles` of one
        run, `total_cycles` and `share` of the program's cycles."""
        total = max(1, self.profile.total_cycles)
        rows = [
            {
                "level": level,
                **{name: getattr(each, name) for name in ("kind", "name", "layer", "direction", "ipu", "runs")},
                "cycles": each.cycles,
                "total_cycles": each.total_cycles,
                "share": each.total_cycles / total,
            }
            for level, each in self.unfolded(levels)
        ]
        return pd.DataFrame(rows)

    def dearest(self, most: int, beside: int = 6) -> list[tuple[int, Branch, int]]:
        """At most about `most` branches in the order of the program, each with its level and how many of those below
        are left out: the dearest branch is unfolded again and again, and shows its `beside` dearest."""
        most, beside = whole("most", most, least=1), whole("beside", beside, least=1)
        root = self.branches.root
        shown: dict[Branch, tuple[Branch, ...]] = {}
        left: dict[Branch, int] = {}
        count, todo = 1, [(-root.total_cycles, 0, root)]
        while todo and count < most:
            branch = heapq.heappop(todo)[2]
            below = self.branches.below(branch)
            kept = set(sorted(below, key=lambda each: -each.total_cycles)[:beside])
            shown[branch] = tuple(each for each in below if each in kept)
            left[branch] = len(below) - len(kept)
            for each in shown[branch]:
                count += 1
                if not each.is_leaf:
                    heapq.heappush(todo, (-each.total_cycles, count, each))
        found: list[tuple[int, Branch, int]] = []
        walk = [(0, root)]
        while walk:
            level, branch = walk.pop()
            found.append((level, branch, left.get(branch, 0)))
            walk += [(level + 1, each) for each in reversed(shown.get(branch, ()))]
        return found

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """A mapping per node: `id, parent` (-1 for roots), `depth, kind, name, function, times, cycles, cause, step`.

        `cycles` are of one execution of the node, a repeat with all its times.
        """
        found: list[dict[str, Any]] = []
        roots = [*self.profile.timeline.functions.items(), ("", self.profile.timeline.root)]
        for function, root in roots:
            self._add(root, -1, 0, function, found)
        return found

    @cached_property
    def _steps(self) -> Mapping[Any, Mapping[Any, Any]]:
        """By id; of a step that several layers share the name is that of the first, and the layer counts the others."""
        names = ("id", "kind", "name", "cause", "layer")
        found: dict[Any, dict[Any, Any]] = {}
        layers: dict[Any, dict[Any, None]] = {}
        for step, kind, name, cause, layer in zip(*(self.profile.steps[each].tolist() for each in names), strict=True):
            found.setdefault(step, {"kind": kind, "name": name, "cause": cause})
            layers.setdefault(step, {})[layer] = None
        return {step: known | {"layer": some_text(list(layers[step]), 1)} for step, known in found.items()}

    def _add(self, node: TimedNode, parent: int, depth: int, function: str, found: list[dict[str, Any]]) -> None:
        row: dict[str, Any] = {
            "id": len(found),
            "parent": parent,
            "depth": depth,
            "kind": _KINDS.get(node.kind, ""),
            "name": node.name,
            "function": node.function or (function if parent < 0 else ""),
            "times": node.times,
            "cycles": node.cycles,
            "cause": "",
            "layer": node.call.layer or "",
            "step": node.step,
        }
        if node.step >= 0:
            known = self._steps[node.step]
            row |= {name: known[name] for name in ("kind", "name", "layer", "cause")}
        found.append(row)
        if node.kind != "call":
            for child in node.children:
                self._add(child, row["id"], depth + 1, function, found)

    def search(self, text: str) -> list[dict[str, Any]]:
        """Nodes whose kind, name, layer or function contains the text, in any case."""
        wanted = text.casefold()
        fields = ("kind", "name", "layer", "function")
        return [row for row in self.nodes if any(wanted in str(row[name]).casefold() for name in fields)]

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data: all nodes."""
        return {"total_cycles": self.profile.total_cycles, "nodes": self.nodes}

    @property
    def sentence(self) -> str:
        """Counts of nodes by kind."""
        counts: dict[str, int] = {}
        for row in self.nodes:
            counts[row["kind"]] = counts.get(row["kind"], 0) + 1
        shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items(), key=lambda item: -item[1]))
        nodes = things_text(len(self.nodes), "node")
        return f"Program of {nodes}: {shown}; {cycles_text(self.profile.total_cycles)} in all, modelled"

    def to_pandas(self) -> pd.DataFrame:
        """The nodes as a table."""
        return pd.DataFrame(self.nodes)

    def to_text(self) -> str:
        """The sentence and the tree, a line per node."""
        return "\n".join([self.sentence, *self._lines(), *self.errors])

    def _lines(self) -> Iterator[str]:
        for row in self.nodes:
            if row["parent"] < 0:
                yield f"function {row['function']}" if row["function"] else "entry"
            words = [row["kind"], row["name"]]
            if row["kind"] == "Repeat":
                words.insert(1, f"× {row['times']:,}")
            if row["kind"] == "Call" and row["function"] != row["name"]:
                words.append(f"-> {row['function']}")
            yield "  " * (row["depth"] + 1) + " ".join(filter(None, words)) + f"  {row['cycles']:,} cycles"
