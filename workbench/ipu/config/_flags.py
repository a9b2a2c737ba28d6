"""`TF_POPLAR_FLAGS`: the flags of the environment that have an effect here."""

# Names: graphcore/tensorflow plugin/poplar/docs/environment_variables.rst.

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields

from workbench.errors import OptionValueError
from workbench.ipu.config._told import tell_once, without_effect

VARIABLE = "TF_POPLAR_FLAGS"
_SWITCH = {"": True, "true": True, "1": True, "false": False, "0": False}
_DRAWN = ("random", "uniform", "normal")
CATEGORIES = ("seed", "infeed", "outfeed", "hostembedding", "parameters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags that are set. `ipu_model_tiles` is 0 when the IPU model has all its tiles."""

    use_ipu_model: bool = False
    ipu_model_tiles: int = 0
    use_synthetic_data: bool = False
    synthetic_data_categories: frozenset[str] = frozenset()
    synthetic_data_initializer: str = ""

    def synthetic(self, category: str) -> bool:
        """Whether data of a category ("Infeed", "Outfeed" …) are made up on the IPU rather than copied."""
        return self.use_synthetic_data or category.lower() in self.synthetic_data_categories

    @property
    def synthetic_value(self) -> float:
        """What every element of synthetic data is: the number of --synthetic_data_initializer, else 0."""
        return 0.0 if self.synthetic_data_initializer in _DRAWN else float(self.synthetic_data_initializer or 0)


def flags() -> Flags:
    """The flags of the environment at this moment; a number that is none is an `OptionError`.

    A word that is none of them changes nothing, and is told once; so are synthetic data that were to be drawn.
    """
    given: dict[str, str] = {}
    for word in os.environ.get(VARIABLE, "").split():
        name, _, value = word.removeprefix("--").partition("=")
        given[name] = value
    without_effect(VARIABLE, given, (each.name for each in fields(Flags)), "--")
    tiles = given.get("ipu_model_tiles", "0")
    if not tiles.isdecimal():
        raise OptionValueError(
            f"TF_POPLAR_FLAGS has --ipu_model_tiles={tiles}", expected="a number of tiles: --ipu_model_tiles=8"
        )
    categories = frozenset(filter(None, given.get("synthetic_data_categories", "").lower().split(",")))
    unknown = sorted(categories - set(CATEGORIES))
    if unknown:
        raise OptionValueError(
            f"TF_POPLAR_FLAGS has the synthetic data categories {', '.join(unknown)}",
            expected=f"some of: {', '.join(CATEGORIES)}",
        )
    synthetic = _switched(given, "use_synthetic_data")
    if "synthetic_data_initializer" in given and not (synthetic or categories):
        raise OptionValueError(
            "TF_POPLAR_FLAGS has --synthetic_data_initializer, but no data are synthetic",
            todo="add --use_synthetic_data or --synthetic_data_categories",
        )
    _check_initializer(given.get("synthetic_data_initializer", ""))
    return Flags(
        use_ipu_model=_switched(given, "use_ipu_model"),
        ipu_model_tiles=int(tiles),
        use_synthetic_data=synthetic,
        synthetic_data_categories=categories,
        synthetic_data_initializer=given.get("synthetic_data_initializer", ""),
    )


def _check_initializer(value: str) -> None:
    """A number; numbers that were to be drawn are told to be 0."""
    if value in _DRAWN:
        tell_once(f"{VARIABLE} has --synthetic_data_initializer={value}: nothing is drawn here, synthetic data are 0")
        return
    try:
        is_number = math.isfinite(float(value or 0))
    except ValueError:
        is_number = False
    if not is_number:
        raise OptionValueError(
            f"{VARIABLE} has --synthetic_data_initializer={value}", expected="a number: --synthetic_data_initializer=2"
        )


def _switched(given: dict[str, str], name: str) -> bool:
    value = given.get(name, "false")
    if value.lower() not in _SWITCH:
        raise OptionValueError(
            f"{VARIABLE} has --{name}={value}", expected=f"--{name}, --{name}=true or --{name}=false"
        )
    return _SWITCH[value.lower()]
