"""The systems that can be described: which IPUs each has to select, and the one in use. `ipu.devices` is their face."""

# IPUs of each product and their clock: Graphcore's product pages (IPU-POD16, IPU-POD64, Bow Pod16, Bow Pod64, C600,
# IPU-M2000 with four IPUs, C2 with two). Device numbers, order of IPUs in a multi-IPU device and PCI domains of the 16
# IPU system: the listing in the API reference of tensorflow.python.ipu.config.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workbench.base.registry import Registry
from workbench.engine.target import Target
from workbench.engine.target import target as find_target
from workbench.errors import InputError
from workbench.ipu.config._state import STATE

_PCI_DOMAINS = ("1a", "1b", "23", "24", "3d", "3e", "43", "44", "8b", "8c", "8e", "8f", "b8", "b9", "ba", "bb")
_PAIRS = ((5, 7), (4, 6), (3, 1), (2, 0), (13, 15), (12, 14), (9, 11), (10, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One line of a listing: its number and the IPUs it stands for, in the order a program sees them."""

    id: int
    ipus: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A described system. `pci_domains` and `pairs` are known where a listing of the real one is published."""

    name: str
    title: str
    ipus: int
    target_name: str
    pci_domains: tuple[str, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def target(self) -> Target:
        """The kind of IPU it has."""
        return find_target(self.target_name)

    @property
    def devices(self) -> tuple[Device, ...]:
        """What can be selected: every IPU, then groups of 2, 4, 8 … neighbours, up to all of them."""
        groups = [(ipu,) for ipu in range(self.ipus)]
        return tuple(Device(id=number, ipus=group) for number, group in enumerate([*groups, *self._groups()]))

    def _groups(self) -> Iterator[tuple[int, ...]]:
        level: list[tuple[int, ...]] = [*self.pairs] or [(ipu, ipu + 1) for ipu in range(0, self.ipus - 1, 2)]
        while level:
            yield from level
            level = [first + second for first, second in zip(level[::2], level[1::2], strict=False)]

    def device(self, id: int) -> Device:
        """The device of this number, or an `InputError` naming the system."""
        found = self.devices
        if not 0 <= id < len(found):
            raise InputError(
                f"the {self.title} has no device {id}",
                expected=f"0 to {len(found) - 1}",
                todo="ipu.devices.current().listing() shows them; ipu.devices.use(name) describes another system",
            )
        return found[id]

    def listing(self) -> str:
        """All devices as `gc-info -l` prints them."""
        width = len(str(len(self.devices) - 1)) + 2
        lines = ["Graphcore device listing:", ""]
        for device in self.devices:
            label = f"[{device.id}]".rjust(width)
            if len(device.ipus) == 1:
                lines.append(f"-+- Id: {label}, type:      [PCIe]{self._domain(device.id)}")
                continue
            lines.append(f"-+- Id: {label}, type: [Multi IPU]")
            lines += [
                f"|--- PCIe Id: {f'[{ipu}]'.rjust(4)}, DNC Id: [{number}]{self._domain(ipu)}"
                for number, ipu in enumerate(device.ipus)
            ]
        return "\n".join(lines)

    def _domain(self, ipu: int) -> str:
        return f", PCI Domain: [0000:{self.pci_domains[ipu]}:00.0]" if self.pci_domains else ""

    def __str__(self) -> str:
        return f"{self.title}: {self.ipus} IPUs ({self.target_name})"


systems: Registry[System] = Registry("system")


def _describe(name: str, title: str, ipus: int, target_name: str) -> None:
    pod16 = ipus == 16
    systems.add(
        name,
        System(
            name=name,
            title=title,
            ipus=ipus,
            target_name=target_name,
            pci_domains=_PCI_DOMAINS if pod16 else (),
            pairs=_PAIRS if pod16 else (),
        ),
    )


_describe("pod4", "Pod4", 4, "ipu2")
_describe("pod16", "Pod16", 16, "ipu2")
_describe("pod64", "Pod64", 64, "ipu2")
_describe("bow-pod4", "Bow-2000", 4, "bow")
_describe("bow-pod16", "Bow Pod16", 16, "bow")
_describe("bow-pod64", "Bow Pod64", 64, "bow")
_describe("c600", "C600", 1, "ipu21")
_describe("c2", "C2", 2, "ipu1")


def current() -> System:
    """The system in use; a Pod16 of GC200 unless `use` said otherwise."""
    return systems.get(STATE.system)


__all__ = ["Device", "System", "current", "systems"]
