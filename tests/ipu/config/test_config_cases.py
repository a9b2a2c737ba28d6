"""What the SDK's own tests assert of IPUConfig, case by case; data/ipuconfig.json names where each comes from."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from workbench import ipu
from workbench.errors import OptionError
from workbench.ipu.config import IPUConfig

DATA = json.loads((Path(__file__).parents[2] / "data" / "ipuconfig.json").read_text(encoding="utf-8"))
ERRORS = {each.__name__: each for each in (Exception, TypeError, ValueError)}


def owner_of(config: IPUConfig, dotted: str) -> tuple[Any, str]:
    *path, last = dotted.split(".")
    owner: Any = config
    for part in path:
        owner = getattr(owner, part)
    return owner, last


def assign(config: IPUConfig, values: dict[str, Any]) -> None:
    for dotted, value in values.items():
        owner, last = owner_of(config, dotted)
        current = getattr(owner, last) if hasattr(owner, last) else None
        setattr(owner, last, type(current)[value] if isinstance(current, Enum) else value)


def run(case: dict[str, Any], config: IPUConfig) -> str:
    """Do what a case does; the step that failed, or nothing."""
    steps = {
        "assign": lambda: assign(config, case["set"]),
        "configure": config.configure_ipu_system,
        "freeze": config.freeze,
    }
    for name, step in steps.items():
        if name == "freeze" and "devices" in case:
            continue
        if case.get("at") == name:
            with pytest.raises(ERRORS[case["raises"]]) as caught:
                step()
            assert all(fact in str(caught.value) for fact in case["says"]), str(caught.value)
            if case["raises"] == "Exception":  # options that exclude each other: ours, and no wrong value
                assert isinstance(caught.value, OptionError)
                assert not isinstance(caught.value, ValueError)
            return name
        step()
    return ""


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["id"])
def test_case(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", case["flags"])
    config = IPUConfig()
    assert run(case, config) == case.get("at", "")
    if "devices" in case:
        assert list(config.ipus_per_device) == case["devices"]
    for name, value in case.get("frozen", {}).items():
        assert config.freeze().get(name) == value
    if case.get("at"):
        IPUConfig().configure_ipu_system()  # the state is usable after an error


def test_every_attribute_has_its_name_type_and_default_in_order() -> None:
    config = IPUConfig()
    found = []
    for metadata in config._all_metadata():
        default = metadata.default
        shown = None if metadata.type is None else str(default) if isinstance(default, Enum) else repr(default)
        kind = metadata.type
        if kind is not None and kind == type(default).__name__:
            kind = "of default"
        found.append({"name": metadata.name, "type": kind, "default": shown})
    assert found == DATA["attributes"]


@pytest.mark.parametrize("name", DATA["enums"])
def test_enumerations_have_their_members(name: str) -> None:
    assert set(getattr(ipu.config, name).__members__) == set(DATA["enums"][name])
    assert len({member.value for member in getattr(ipu.config, name)}) == len(DATA["enums"][name])


def test_only_a_configuration_configures() -> None:  # ERR-002
    with pytest.raises(TypeError, match=r"config is \{\}"):
        ipu.config.configure_ipu_system({})  # type: ignore[arg-type]


def test_a_moved_option_is_deprecated_and_says_where(caplog: pytest.LogCaptureFixture) -> None:  # CFG-IPU-deprecated
    config = IPUConfig()
    config.optimizations.enable_fast_math = True
    assert "optimizations.enable_fast_math has been deprecated" in caplog.text
    assert "'optimizations.math.fast'" in caplog.text
    assert config.freeze().get("optimizations.math.fast") is True
