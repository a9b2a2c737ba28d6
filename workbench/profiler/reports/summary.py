"""The verdict first, then the machine, the time, the program, and what was assumed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from workbench.base.units import bytes_text, cycles_text, rate_text, seconds_text, things_text
from workbench.profiler.advice.explain import known_error
from workbench.profiler.advice.regions import full_region
from workbench.profiler.fidelity import KINDS, NOT_KNOWN, Turnout, TypicalError, in_doubt, turnout
from workbench.profiler.memory import live_bytes
from workbench.profiler.profile import Profile, call_text, run_text, samples_text
from workbench.profiler.registry import report
from workbench.profiler.report import Report, records
from workbench.profiler.timeline.positions import positions_of


def _counted(count: int, things: str) -> str:
    """2, `"compute_sets"` → `"2 compute sets"`."""
    one = "vertex" if things == "vertices" else things.removesuffix("s").replace("_", " ")
    return things_text(count, one)


@report("summary")
@dataclass(frozen=True, kw_only=True, eq=False)
class Summary(Report):
    """What a user reads first. Bytes are bytes, cycles those of the target's clock."""

    profile: Profile

    @classmethod
    def from_profile(cls, profile: Profile) -> Summary:
        """The summary of a profile."""
        return cls(profile=profile)

    @property
    def verdict(self) -> str:
        """`"Fits: worst tile 812 uses 512.3 KiB of 624.0 KiB, 111.7 KiB to spare"`, or by how much it does not fit."""
        profile = self.profile
        peak, limit = profile.peak, int(profile.target["bytes_per_tile"])
        place = f"worst tile {peak.tile:,}" + (f" of IPU {peak.ipu}" if profile.ipus > 1 else "")
        used = f"{place} uses {bytes_text(peak.bytes)} of {bytes_text(limit)}"
        if profile.fits:
            return f"Fits: {used}, {bytes_text(profile.margin_bytes)} to spare"
        if profile.margin_bytes >= 0:
            return f"Does not fit: {used}, but not all of it could be placed inside its memory region"
        region = full_region(profile)
        over = f"Does not fit: {used}, {bytes_text(-profile.margin_bytes)} over"
        return over if region is None else f"{over}; {region}"

    @property
    def caution(self) -> str:
        """A sentence when more than one in ten published cases with this margin turned out otherwise, else empty."""
        doubt = in_doubt(*self._known_memory)
        return f"The verdict is in doubt: {doubt}" if doubt else ""

    @property
    def sureness(self) -> str:
        """A sentence on how published cases with this relative margin turned out, as counts; empty without any.

        Empty, too, where a memory region is full and the tile is not: no published case says how that turns out.
        """
        found = self._turnout
        return "" if found is None else self.caution or str(found).capitalize()

    @property
    def _known_memory(self) -> tuple[TypicalError | None, int, int]:
        profile = self.profile
        return known_error(profile, "memory"), profile.max_tile_bytes, int(profile.target["bytes_per_tile"])

    @cached_property
    def _turnout(self) -> Turnout | None:
        found = turnout(*self._known_memory)
        return found if found is not None and found.fits == self.profile.fits else None

    @property
    def sentence(self) -> str:
        """Verdict, how sure it is, and time."""
        parts = [self.verdict, self.sureness or self.caution, self.time]
        return ". ".join(part for part in parts if part)

    @property
    def time(self) -> str:
        """Cycles, seconds and throughput of one call."""
        profile = self.profile
        call = call_text(profile.meta)
        call = f"{call}," if "," in call else call
        text = f"One {call} takes {cycles_text(profile.total_cycles)} ({seconds_text(profile.seconds)}"
        if profile.samples_per_second:
            text += f", {rate_text(profile.samples_per_second)}"
        return text + ", modelled)"

    @cached_property
    def data(self) -> dict[str, Any]:
        """JSON data; `what_if` marks a machine that does not exist."""
        profile = self.profile
        meta, target = profile.meta, profile.target
        return {
            "name": profile.name,
            "verdict": self.verdict,
            "caution": self.caution,
            "sureness": self.sureness,
            "turnout": None if self._turnout is None else dataclasses.asdict(self._turnout),
            "fits": profile.fits,
            "margin_bytes": profile.margin_bytes,
            "max_tile_bytes": profile.max_tile_bytes,
            "peak": profile.peak._asdict(),
            "peak_step": self.peak_step,
            "total_cycles": profile.total_cycles,
            "seconds": profile.seconds,
            "samples_per_second": profile.samples_per_second,
            "mode": meta["mode"],
            "batch_size": meta["batch_size"],
            "ipus": profile.ipus,
            "replicas": meta["replicas"],
            "target": dict(target),
            "what_if": list(target.get("what_if", [])),
            "program": self.program,
            "config_changed": dict(meta["config_changed"]),
            "assumptions": profile.assumptions,
            "warnings": list(meta["warnings"]),
            "unmodelled": records(profile.unmodelled),
            "engine_version": meta["engine_version"],
        }

    @cached_property
    def peak_step(self) -> str:
        """The name of the program step at the peak, as the layer has it that it runs for there."""
        peak = self.profile.peak
        place = int(self.profile.arrays["live_peak_position"][peak.ipu, peak.tile])
        names = positions_of(self.profile, peak.ipu, live_bytes.positions(self.profile, peak.ipu)).name
        return str(names[place]) if place < len(names) and peak.step >= 0 else ""

    @property
    def program(self) -> dict[str, int]:
        """Counts of variables, steps, compute sets, exchanges and (where known) vertices and edges."""
        tables = self.profile.tables
        kinds = tables["steps"]["kind"]
        found = {
            "variables": len(tables["variables"]["id"]),
            "steps": len(kinds),
            "compute_sets": int((kinds == "OnTileExecute").sum()),
            "exchanges": int((kinds == "DoExchange").sum()),
        }
        return found | {key: int(value) for key, value in self.profile.meta.get("program", {}).items()}

    def to_pandas(self) -> pd.DataFrame:
        """A row per line: `item`, `value` (text)."""
        return pd.DataFrame(self.lines, columns=["item", "value"])

    @cached_property
    def lines(self) -> list[tuple[str, str]]:
        """The summary as (item, value) texts."""
        profile = self.profile
        meta, target = profile.meta, profile.target
        size = f"{things_text(target['tiles_per_ipu'], 'tile')} × {bytes_text(target['bytes_per_tile'])}"
        kind = "" if target["architecture"] == target["name"] else f" (architecture {target['architecture']})"
        machine = f"{target['name']}{kind}, {size}, {target['clock_hz'] / 1e9:.3g} GHz"
        peak, samples = profile.peak, samples_text(meta)
        rows = [
            ("Model", f"{profile.name}, {run_text(meta)}"),
            ("Target", machine),
            *([("Samples", samples)] if samples else []),
            ("IPUs", _ipus_text(profile.ipus, int(meta["replicas"]))),
            ("Peak", f"step {peak.step:,} ({self.peak_step}) on tile {peak.tile:,} of IPU {peak.ipu}"),
            ("Program", ", ".join(_counted(value, key) for key, value in self.program.items())),
        ]
        if buffers := meta.get("remote_buffers"):
            held = sum(int(buffer["size_bytes"]) for buffer in buffers)
            rows.append(
                ("Streaming memory", f"{bytes_text(held)} a replica in {things_text(len(buffers), 'remote buffer')}")
            )
        if target.get("what_if"):
            rows.append(("What if", "not a real machine: " + ", ".join(target["what_if"])))
        rows += [("Option", f"{key} = {value}") for key, value in meta["config_changed"].items()]
        rows += [("Assumed", text) for text in profile.assumptions]
        rows += [("Warning", str(text)) for text in meta["warnings"]]
        rows += [
            (
                "Unmodelled",
                f"{row['primitive']} × {row['count']} in {row['layer'] or '(no layer)'}, by the generic rule",
            )
            for row in records(profile.unmodelled)
        ]
        rows += [("Error", f"{KINDS[kind]}: {self.error_text(kind)}") for kind in ("memory", "cycles")]
        return [*rows, ("Engine", str(meta["engine_version"]))]

    def error_text(self, kind: str) -> str:
        """How far modelled numbers of a kind usually are off, with count and spread, or that it is not known."""
        known = known_error(self.profile, kind)
        return str(known) if known else NOT_KNOWN

    def to_text(self) -> str:
        """Verdict, how sure it is, time, then a line per item."""
        head = [part + "." for part in (self.verdict, self.sureness or self.caution, self.time) if part]
        width = max(len(item) for item, _ in self.lines)
        return "\n".join([*head, *(f"{item.ljust(width)}  {value}" for item, value in self.lines)])


def _ipus_text(ipus: int, replicas: int) -> str:
    """`"2"`; of several replicas `"2 for each of 4 replicas, 8 in all"`."""
    return str(ipus) if replicas == 1 else f"{ipus} for each of {replicas} replicas, {ipus * replicas} in all"
