"""Described systems and their listings."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workbench import ipu
from workbench.errors import InputError

SYSTEMS = ipu.devices.names()


def test_the_default_is_a_pod16_of_gc200() -> None:
    system = ipu.devices.current()
    assert (system.title, system.ipus, system.target.name, system.target.tiles_per_ipu) == ("Pod16", 16, "ipu2", 1472)


def test_the_listing_of_a_pod16_is_the_one_published() -> None:
    lines = ipu.devices.current().listing().splitlines()
    # API reference of tensorflow.python.ipu.config, select_ipus.
    assert lines[0] == "Graphcore device listing:"
    assert lines[2] == "-+- Id:  [0], type:      [PCIe], PCI Domain: [0000:1a:00.0]"
    assert lines[17] == "-+- Id: [15], type:      [PCIe], PCI Domain: [0000:bb:00.0]"
    assert lines[18:21] == [
        "-+- Id: [16], type: [Multi IPU]",
        "|--- PCIe Id:  [5], DNC Id: [0], PCI Domain: [0000:3e:00.0]",
        "|--- PCIe Id:  [7], DNC Id: [1], PCI Domain: [0000:44:00.0]",
    ]
    assert lines[-1] == "|--- PCIe Id:  [8], DNC Id: [15], PCI Domain: [0000:8b:00.0]"


@pytest.mark.parametrize(
    ("id", "ipus"),
    [
        (3, (3,)),
        (16, (5, 7)),
        (23, (10, 8)),
        (24, (5, 7, 4, 6)),
        (27, (9, 11, 10, 8)),
        (29, (13, 15, 12, 14, 9, 11, 10, 8)),
        (30, (5, 7, 4, 6, 3, 1, 2, 0, 13, 15, 12, 14, 9, 11, 10, 8)),
    ],
)
def test_devices_of_a_pod16(id: int, ipus: tuple[int, ...]) -> None:
    assert ipu.devices.current().device(id).ipus == ipus


@pytest.mark.parametrize("name", SYSTEMS)
def test_groups_of_every_system_are_powers_of_two_and_share_ipus_only_across_sizes(name: str) -> None:
    system = ipu.devices.use(name)
    assert ipu.devices.current() is system
    assert ipu.devices.number_of_ipus() == system.ipus
    assert len(system.devices) == 2 * system.ipus - 1
    size = 1
    while size <= system.ipus:
        taken = [ipu for device in system.devices if len(device.ipus) == size for ipu in device.ipus]
        assert sorted(taken) == list(range(system.ipus))
        size *= 2
    assert system.listing().count("-+- Id:") == len(system.devices)


@pytest.mark.parametrize(
    ("name", "target", "ipus"), [("bow-pod64", "bow", 64), ("pod4", "ipu2", 4), ("c600", "ipu21", 1)]
)
def test_a_system_implies_its_ipu(name: str, target: str, ipus: int) -> None:
    system = ipu.devices.use(name)
    assert (system.target_name, system.ipus) == (target, ipus)
    assert str(system).endswith(f"{ipus} IPUs ({target})")


def test_an_unknown_system_changes_nothing() -> None:
    with pytest.raises(InputError, match=r"no system is called 'pod8'\. Expected: one of: pod4, pod16"):
        ipu.devices.use("pod8")
    assert ipu.devices.current().name == "pod16"


@pytest.mark.parametrize("device", ["/device:IPU:0", "/replica:0/task:0/device:IPU:0", "IPU:0", "/device:ipu:0"])
def test_a_device_that_nothing_configured_is_one_ipu(device: str) -> None:
    assert ipu.utils.get_num_of_ipus_in_device(device) == 1


@pytest.mark.parametrize(
    ("device", "says"), [("/device:CPU:0", "is no IPU device"), ("/device:IPU:2", "/device:IPU:0 to /device:IPU:1")]
)
def test_a_device_that_is_not_there(device: str, says: str) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = [2, 4]
    config.configure_ipu_system()
    assert ipu.utils.get_num_of_ipus_in_device("/device:IPU:1", device="/cpu:0") == 4
    with pytest.raises(InputError, match=says):
        ipu.utils.get_num_of_ipus_in_device(device)


def test_modules_are_loaded_when_used() -> None:
    code = (
        "import sys; from workbench import ipu; assert 'workbench.ipu.config' not in sys.modules; "
        "ipu.config.IPUConfig(); assert {'config', 'devices', 'utils'} <= set(dir(ipu)); "
        "assert not {'keras', 'jax', 'pandas'} & set(sys.modules); assert not hasattr(ipu, 'no_such_module')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
