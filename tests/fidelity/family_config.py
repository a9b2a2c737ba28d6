"""Behaviour of IPUConfig: what is accepted, kept, refused, saved and documented, by the case's own words."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from tests.fidelity.outcome import Case, NotRun
from workbench import ipu
from workbench.ipu.config import IPUConfig
from workbench.ipu.config._attributes import Attribute
from workbench.ipu.config._base import ConfigBase, document


class TestEnum(Enum):
    __test__ = False
    APPLE = 1
    ORANGE = 2
    PEAR = 3


# The small configuration the cases are about; their `config` describes it.
_GONE = "Attribute has been removed as it doesn't have an effect."
ATTRIBUTES = (
    Attribute(name="attr0", default=lambda: 1, annotation=int | str | list, doc="This is the docstring for attr0"),
    Attribute(name="attr6", default=lambda: ([1.0],), annotation=tuple[list[float | tuple[str]], ...]),
    Attribute(name="nested1", doc="This is the docstring for the nested1 category"),
    Attribute(name="nested1.attr1", default=lambda: 1, annotation=int | list, deprecated=_GONE),
    Attribute(name="nested1.nested2", deprecated="Category is no longer relevant."),
    Attribute(name="nested1.nested2.attr2", default=lambda: 1),
    Attribute(name="nested1.nested2.nested4"),
    Attribute(name="nested1.nested2.nested4.attr4", default=lambda: False),
    Attribute(name="nested1.nested2.nested4.attr7", default=lambda: TestEnum.APPLE),
    Attribute(name="nested1.nested2.attr5", default=lambda: 1, deprecated="attr5 is no longer relevant."),
    Attribute(name="nested1.nested3"),
    Attribute(name="nested1.nested3.attr3", default=lambda: "test", doc="This is the docstring for attr3"),
    Attribute(name="nested1.nested3.attr0", default=lambda: 1),
)


class TestConfig(ConfigBase):
    __test__ = False
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ATTRIBUTES)


def name_of(problem: BaseException) -> str:
    """The built-in exception a program would catch it as."""
    return next(kind.__name__ for kind in type(problem).__mro__ if kind.__module__ == "builtins")


def heard(action: Callable[[], Any]) -> str:
    """The exception an action raises and its text; "nothing" when it raises none."""
    try:
        action()
    except Exception as problem:
        return f"{name_of(problem)} {problem}"
    return "nothing"


def text_of(action: Callable[[], Any]) -> str:
    """The text of the exception an action raises."""
    return heard(action).partition(" ")[2]


def put(config: ConfigBase, dotted: str, value: Any) -> None:
    """Assign by full name."""
    *path, last = dotted.split(".")
    owner: Any = config
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, value)


def made(**values: Any) -> IPUConfig:
    """A configuration with options set by full name, dots as double underscores."""
    config = IPUConfig()
    for name, value in values.items():
        put(config, name.replace("__", "."), value)
    return config


@contextmanager
def on_model() -> Iterator[None]:
    """Run as on the IPU Model."""
    before = os.environ.get("TF_POPLAR_FLAGS")
    os.environ["TF_POPLAR_FLAGS"] = "--use_ipu_model"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TF_POPLAR_FLAGS"]
        else:
            os.environ["TF_POPLAR_FLAGS"] = before


def configured(**values: Any) -> str:
    """What configuring with these options raises."""
    config = made(**values)
    try:
        return heard(config.configure_ipu_system)
    finally:
        ipu.config.reset_ipu_configuration()


def modelled(**values: Any) -> str:
    """The same on the IPU Model."""
    with on_model():
        return configured(**values)


def logged(dotted: str, value: Any) -> list[str]:
    """What assigning logs."""
    messages: list[str] = []
    logger = logging.getLogger("workbench.ipu.config")
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        put(TestConfig(), dotted, value)
    finally:
        logger.removeHandler(handler)
    return messages


def _refused(values: list[Any], dotted: str) -> bool:
    return all(heard(lambda value=value: put(TestConfig(), dotted, value)).startswith("TypeError") for value in values)


def _assigned() -> str:
    config = TestConfig()
    put(config, "attr0", 5)
    put(config, "nested1.nested3.attr3", "text")
    kept = (config.attr0, config.nested1.nested3.attr3) == (5, "text")
    return "value read back" if kept else "lost"


def _independent() -> bool:
    config = TestConfig()
    put(config, "nested1.nested3.attr0", 7)
    return bool(config.attr0 == 1 and config.nested1.nested3.attr0 == 7)


def _union() -> str:
    for value in (1, "test", [5, "test", True]):
        put(TestConfig(), "attr0", value)
    problem = heard(lambda: put(TestConfig(), "attr0", 1.0))
    return problem if _refused([True, (1,), 1.0], "attr0") else "taken"


def _deep() -> str:
    for value in (([1.0],), ([1.0, 2.0, ("test1",)],), ([5.0], [("test2",)])):
        put(TestConfig(), "attr6", value)
    wrong = [True, ([True],), ([1.0], ["test1"]), ([1.0], [("test1",), 1])]
    kind = "typing.Tuple[typing.List[typing.Union[float, typing.Tuple[str]]], ...]"
    full = kind in heard(lambda: put(TestConfig(), "attr6", True))
    return "TypeError with full type text" if _refused(wrong, "attr6") and full else "taken"


def _metadata() -> dict[str, list[Any]]:
    config, names = TestConfig(), ("attr0", "nested1.nested3.attr3", "nested1.nested3.attr0", "nested1")
    found = {name: config.get_attribute_metadata(name) for name in names}
    return {name: [each.name, each.type, each.default, each.__doc__, each._depth] for name, each in found.items()}


def _documented() -> bool:
    text = document(TestConfig())
    parts = (".. _attr0:", ".. py:attribute:: attr0", ":type:", ":value:", "DEPRECATED")
    indents = [line.partition(".. py")[0] for line in text.splitlines() if ".. py:attribute:: nested1" in line]
    deeper = len({len(indent) for indent in indents}) == 4  # nested1, its own, those of nested2, those of nested4
    return all(part in text for part in parts) and deeper and document(TestConfig()) == text


def _apart() -> bool:
    one = ConfigBase((Attribute(name="same", default=lambda: 1, deprecated="first"),))
    other = ConfigBase((Attribute(name="same", default=lambda: 1, deprecated="second"),))
    return [each.get_attribute_metadata("same").deprecated_msg for each in (one, other)] == ["first", "second"]


def _from_dict() -> dict[str, Any]:
    config = TestConfig()
    wanted = {"attr0": 12, "nested1.attr1": 34, "nested1.nested2.attr2": 56}
    config.from_dict(wanted)
    return {name: config.to_dict()[name] for name in wanted}


def _every_level() -> dict[str, list[Any]]:
    values = TestConfig().to_dict()
    owners = {"base_config": ("attr0",), "nested2": ("nested1.nested2.attr2",)}
    owners["nested3"] = ("nested1.nested3.attr3", "nested1.nested3.attr0")
    return {owner: [values[name] for name in names] for owner, names in owners.items()}


def _enum_saved() -> dict[str, Any]:
    config = TestConfig()
    put(config, "nested1.nested2.nested4.attr7", TestEnum.PEAR)
    return {"nested1.nested2.nested4.attr7": config.to_dict()["nested1.nested2.nested4.attr7"]}


def _enum_restored() -> str:
    config = TestConfig()
    config.from_dict({"nested1.nested2.nested4.attr7": 2})
    return f"{config.nested1.nested2.nested4.attr7} for 2"


def _shown() -> list[str]:
    config = TestConfig()
    values = {"attr0": 12, "nested1.attr1": 34, "nested1.nested2.attr2": 56}
    for name, value in values.items():
        put(config, name, value)
    put(config, "nested1.nested2.nested4.attr7", TestEnum.PEAR)
    return repr(config).splitlines()[1:]


def _deprecation() -> str:
    config = IPUConfig()
    return str(config.get_attribute_metadata("optimizations.enable_fast_math").deprecated_msg)


def _everything() -> list[bool]:
    frozen = made(floating_point_behaviour__set_all=True).freeze()
    group = "floating_point_behaviour"
    on = [bool(frozen.get(f"{group}.{name}")) for name in ("inv", "div0", "oflo")]
    return [*on, str(frozen.get(f"{group}.esr")) == "ON", bool(frozen.get(f"{group}.nanoo"))]


def _connection() -> str:
    kind = ipu.config.DeviceConnectionType
    problems = [configured(device_connection__type=each) for each in (kind.PRE_COMPILE, kind.NEVER)]
    return problems[0] if all("device_connection.version" in each for each in problems) else "taken"


def _process_range() -> str:
    group = "experimental__multi_replica_distribution__process_"
    problems = [configured(**{f"{group}count": 1, f"{group}index": index}) for index in (5, -1)]
    return problems[0] if all(each.startswith("ValueError") for each in problems) else "taken"


def _categories() -> list[str]:
    return [each.name for each in IPUConfig()._all_metadata() if each.type is None]


def _enums() -> dict[str, list[str]]:
    names = (
        "SelectionOrder",
        "ExecutionProfileType",
        "DeviceConnectionType",
        "MergeRemoteBuffersBehaviour",
        "SchedulingAlgorithm",
        "StochasticRoundingBehaviour",
    )
    return {name: list(getattr(ipu.config, name).__members__) for name in names}


_DEEP = "nested1.nested2.nested4.attr4"
_COUNT = "experimental__multi_replica_distribution__process_count"
_ASKED: dict[str, Callable[[], Any]] = {
    "assign": _assigned,
    "assign-category": lambda: text_of(lambda: put(TestConfig(), "nested1.nested2", 1)),
    "assign-private": lambda: text_of(lambda: put(TestConfig(), "_private_attribute", 1)),
    "same-name": _independent,
    "typehint-union": _union,
    "typehint-deep": _deep,
    "didyoumean-cat": lambda: text_of(lambda: put(TestConfig(), "nested5", 1)),
    "didyoumean-deep": lambda: text_of(lambda: put(TestConfig(), "nested11.nested2.attr2", 1)),
    "metadata": _metadata,
    "metadata-unknown": lambda: text_of(lambda: TestConfig().get_attribute_metadata("nested1.attr5")),
    "metadata-notrel": lambda: text_of(lambda: TestConfig().nested1.get_attribute_metadata("nested1.attr1")),
    "deprec-warn": lambda: logged("nested1.attr1", 2)[0],
    "deprec-none": lambda: logged("attr0", 2) == [],
    "deprec-propagate": lambda: logged(_DEEP, True)[0],
    "deprec-keep": lambda: logged("nested1.nested2.attr5", 2)[0],
    "docgen": _documented,
    "protobuf-rec": _every_level,  # saved whole, as there is no protobuf
    "parallel-deprec": _apart,
    "fromdict": _from_dict,
    "todict-enum": _enum_saved,
    "fromdict-enum": _enum_restored,
    "repr": _shown,
    "ipu-auto-int": lambda: list(made(auto_select_ipus=2).ipus_per_device),
    "ipu-auto-list": lambda: list(made(auto_select_ipus=[4, 4]).ipus_per_device),
    "ipu-auto-many": lambda: list(made(auto_select_ipus=[2, 3, 4, 5]).ipus_per_device),
    "ipu-auto-bool": lambda: heard(lambda: made(auto_select_ipus=True)),
    "ipu-auto-excl": lambda: configured(auto_select_ipus=1, select_ipus=1),
    "ipu-select-model": lambda: modelled(select_ipus=1),
    "ipu-select-int": lambda: [made(select_ipus=1).freeze().get("select_ipus")],
    "ipu-select-bool": lambda: heard(lambda: made(select_ipus=True)).partition(" ")[0],
    "ipu-conn-version": _connection,
    "ipu-repl-model": lambda: modelled(**{_COUNT: 1}),
    "ipu-repl-range": _process_range,
    "ipu-fp-setall": _everything,
    "ipu-io-noplace": lambda: configured(io_tiles__place_ops_on_io_tiles=True),
    "ipu-io-mem": lambda: IPUConfig().io_tiles.available_memory_proportion,
    "ipu-model-version": lambda: modelled(ipu_model__version=""),
    "IPU-categories": _categories,
    "IPU-enums": _enums,
    "IPU-deprecated": _deprecation,
}


def configuration_behaviour(case: Case) -> Any:
    """What ours does in a case of IPUConfig."""
    asked = _ASKED.get(str(case["id"]).partition("-")[2])
    return NotRun("this behaviour is not asked here") if asked is None else asked()
