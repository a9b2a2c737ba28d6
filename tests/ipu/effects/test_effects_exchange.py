"""`opt.internalExchangeOptimisationTarget`: read as an engine option, checked, shown, and without an effect here."""

from __future__ import annotations

import json

import pytest

from workbench.errors import OptionError
from workbench.ipu.config import IPUConfig
from workbench.profiler.advice.levers import Change
from workbench.profiler.advice.snippet import code_of

EXCHANGE_AIM = "opt.internalExchangeOptimisationTarget"


def configuration(**engine_options: str) -> IPUConfig:
    config = IPUConfig()
    config.compilation_poplar_options = {name.replace("__", "."): value for name, value in engine_options.items()}
    return config


def test_it_is_read_from_the_configuration_and_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration().freeze().get(EXCHANGE_AIM) == "cycles"
    given = configuration(opt__internalExchangeOptimisationTarget="memory", opt__useAutoloader="true").freeze()
    assert given.get(EXCHANGE_AIM) == "memory"
    assert given.get("compilation_poplar_options") == (("opt.useAutoloader", "true"),)
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps({EXCHANGE_AIM: "balanced"}))
    assert configuration().freeze().get(EXCHANGE_AIM) == "balanced"


def test_another_value_is_refused() -> None:
    with pytest.raises(OptionError, match=r"(?s)Target is 'size'.*one of: 'cycles', 'balanced', 'memory'"):
        configuration(opt__internalExchangeOptimisationTarget="size").freeze()


def test_it_says_that_it_has_no_effect_and_why() -> None:
    ((name, why),) = configuration(opt__internalExchangeOptimisationTarget="memory").freeze().without_effect()
    assert name == EXCHANGE_AIM
    assert "leaner" in why


def test_the_code_to_type_sets_it_where_users_do() -> None:
    change = Change(lever="", title="", options=((EXCHANGE_AIM, "memory"),), estimated_bytes=0)
    assert f'config.compilation_poplar_options["{EXCHANGE_AIM}"] = "memory"' in code_of(change)
