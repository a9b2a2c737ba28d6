"""IPUConfig in use: configuring, freezing, and what a compile then sees."""

from __future__ import annotations

import copy
import json
import pickle
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import ipu
from workbench.engine.options import Option, attributes
from workbench.errors import InputError, OptionError
from workbench.executable import make_request
from workbench.ipu.config import IPUConfig, SchedulingAlgorithm, SelectionOrder, current_options, get_ipu_config
from workbench.ipu.config._flags import Flags, flags

AMP = "matmuls.poplar_options.availableMemoryProportion"


def test_a_dictionary_of_options_is_changed_in_place() -> None:
    config = IPUConfig()
    config.matmuls.poplar_options["partialsType"] = "half"
    assert config.freeze().get("matmuls.poplar_options.partialsType") == "half"
    assert IPUConfig().matmuls.poplar_options == {}


def test_a_frozen_copy_does_not_follow_later_assignments() -> None:
    config = IPUConfig()
    config.matmuls.poplar_options = {"availableMemoryProportion": "0.2"}
    config.configure_ipu_system()
    frozen = config.freeze()
    config.matmuls.poplar_options["availableMemoryProportion"] = "0.9"
    config.allow_recompute = True
    assert frozen.get(AMP) == current_options().get(AMP) == 0.2
    assert current_options().get("allow_recompute") is False


def test_what_is_configured_last_is_what_a_compile_takes() -> None:
    for share in ("0.1", "0.4"):
        config = IPUConfig()
        config.matmuls.poplar_options = {"availableMemoryProportion": share}
        config.configure_ipu_system()
    assert make_request("mlp").options.get(AMP) == 0.4
    ipu.config.reset_ipu_configuration()
    assert make_request("mlp").options.get(AMP) == 0.6


def test_an_unknown_key_is_an_error_when_compiling_and_names_the_nearest() -> None:
    config = IPUConfig()
    config.convolutions.poplar_options = {"availableMemoryPortion": "0.2"}
    config.configure_ipu_system()
    with pytest.raises(OptionError, match=r"did you mean 'convolutions\.poplar_options\.availableMemoryProportion'"):
        make_request("mlp")


def test_a_configuration_in_force_is_replaced_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    config = IPUConfig()
    config.auto_select_ipus = [2, 1]
    config.configure_ipu_system()
    config.configure_ipu_system()
    assert caplog.messages == []
    first, second = get_ipu_config()
    assert first == second == config
    first.auto_select_ipus = 8
    assert get_ipu_config()[0].auto_select_ipus == [2, 1]
    with pytest.raises(OptionError, match="already configured otherwise"):
        ipu.config.configure_ipu_system(IPUConfig(), reset_configuration=False)
    IPUConfig().configure_ipu_system()
    assert "Resetting" in caplog.text


def test_frozen_options_are_made_once_for_what_they_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_options() is current_options()
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 16
    config.configure_ipu_system()
    first = current_options()
    assert first.get("ipu_model.tiles_per_ipu") == 16
    config.ipu_model.tiles_per_ipu = 8  # of the configuration that was given, not of the one in force
    assert current_options() is first
    config.configure_ipu_system()
    assert current_options().get("ipu_model.tiles_per_ipu") == 8
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=4")
    assert current_options().get("ipu_model.tiles_per_ipu") == 4
    monkeypatch.delenv("TF_POPLAR_FLAGS")
    ipu.devices.use("bow-pod16")
    assert current_options().get("ipu_model.version") != first.get("ipu_model.version")
    ipu.config.reset_ipu_configuration()
    assert current_options().get("ipu_model.tiles_per_ipu") != 8


def test_without_devices_there_is_no_configuration_to_get() -> None:
    for configure in (lambda: None, IPUConfig().configure_ipu_system):
        configure()
        with pytest.raises(RuntimeError, match="No IPU devices configured"):
            get_ipu_config()


def test_a_refused_configuration_leaves_the_one_in_force() -> None:
    good, bad = IPUConfig(), IPUConfig()
    good.auto_select_ipus = 2
    good.configure_ipu_system()
    bad.io_tiles.place_ops_on_io_tiles = True
    with pytest.raises(OptionError):
        bad.configure_ipu_system()
    assert get_ipu_config() == [good]


@pytest.mark.parametrize(
    ("system", "selected", "says"),
    [
        ("pod4", {"auto_select_ipus": 8}, "selects 8 IPUs, but the Pod4 has 4"),
        ("pod16", {"auto_select_ipus": [16, 1]}, "selects 17 IPUs, but the Pod16 has 16"),
        ("pod16", {"auto_select_ipus": [2, 0]}, "at least one IPU a device"),
        ("pod16", {"select_ipus": [24, 16]}, "share IPU 5"),
        ("pod16", {"select_ipus": 31}, "the Pod16 has no device 31. Expected: 0 to 30"),
        ("pod16", {"select_ipus": -1}, "no device -1"),
    ],
)
def test_an_impossible_selection(system: str, selected: dict[str, Any], says: str) -> None:
    ipu.devices.use(system)
    config = IPUConfig()
    for name, value in selected.items():
        setattr(config, name, value)
    with pytest.raises((OptionError, InputError), match=says):
        config.configure_ipu_system()


def test_the_ipu_model_has_as_many_ipus_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--max_compilation_threads=4 --use_ipu_model")
    ipu.devices.use("pod4")
    config = IPUConfig()
    config.auto_select_ipus = 8
    config.configure_ipu_system()
    assert current_options().ipus() == 8
    assert ipu.config.use_emulation()
    assert ipu.utils.is_running_on_ipu_model()


@pytest.mark.parametrize(
    ("text", "tiles"),
    [
        ("--use_ipu_model --ipu_model_tiles=8", 8),
        ("--use_ipu_model=true --ipu_model_tiles=8", 8),
        ("--ipu_model_tiles=8", 1472),
        ("--use_ipu_model=false --ipu_model_tiles=8", 1472),
        ("", 1472),
    ],
)
def test_tiles_from_the_environment_are_those_of_the_ipu_model(
    text: str, tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", text)
    assert make_request("mlp").target.tiles_per_ipu == tiles


def test_flags_that_others_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_synthetic_data --synthetic_data_initializer=random")
    assert flags() == Flags(use_synthetic_data=True, synthetic_data_initializer="random")
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--ipu_model_tiles=few")
    with pytest.raises(OptionError, match="--ipu_model_tiles=few"):
        flags()
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model=maybe")  # was as if it were not there
    with pytest.raises(OptionError, match=r"--use_ipu_model=maybe\. Expected: --use_ipu_model, "):
        flags()


def test_what_the_environment_asks_for_and_nothing_does_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("workbench.ipu.config._told._told", set())
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_modle --ipu_model_tiles=4")
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps({"autoReport.dir": "x", "autoReport.all": "false"}))
    assert make_request("mlp").target.tiles_per_ipu == make_request("mlp").target.tiles_per_ipu == 1472
    flag, option = sorted(caplog.messages, reverse=True)
    assert flag.startswith(
        "TF_POPLAR_FLAGS has --use_ipu_modle, which has no effect here: did you mean 'use_ipu_model'?"
    )
    assert flag.endswith("--synthetic_data_initializer, --use_ipu_model, --use_synthetic_data")
    assert option.startswith(
        "POPLAR_ENGINE_OPTIONS has autoReport.dir, which has no effect here: did you mean 'autoRep"
    )
    assert "autoReport.directory, autoReport.outputExecutionProfile, " in option


def test_synthetic_data_that_were_to_be_drawn_are_told_once_to_be_0(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("workbench.ipu.config._told._told", set())
    for value, number in (("random", 0), ("random", 0), ("-2.5", -2.5), ("", 0)):
        monkeypatch.setenv("TF_POPLAR_FLAGS", f"--use_synthetic_data --synthetic_data_initializer={value}")
        assert flags().synthetic_value == number
    (told,) = caplog.messages
    assert told.endswith("--synthetic_data_initializer=random: nothing is drawn here, synthetic data are 0")
    for value in ("rnadom", "nan"):  # was 0 in silence
        monkeypatch.setenv("TF_POPLAR_FLAGS", f"--use_synthetic_data --synthetic_data_initializer={value}")
        with pytest.raises(OptionError, match=rf"--synthetic_data_initializer={value}\. Expected: a number"):
            flags()


def test_an_engine_option_of_the_configuration_that_nothing_does_is_told_once_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("workbench.ipu.config._told._told", set())
    config = IPUConfig()
    config.compilation_poplar_options = {"autoReport.dir": "x", "debug.instrument": "true"}
    assert config.freeze() == config.freeze()
    (told,) = caplog.messages
    assert told.startswith(
        "compilation_poplar_options has autoReport.dir, which has no effect here: did you mean 'autoRep"
    )


@pytest.mark.parametrize("each", [each for each in attributes() if each.type is int], ids=lambda each: each.name)
def test_a_number_beyond_what_its_meaning_has_is_refused(each: Option) -> None:
    """In 31 bits are counts, in 63 bytes, as the SDK has them; of chips and tiles there are as many as there are."""
    config = IPUConfig()
    for value in (10**30, -1):
        config.from_dict({**config.to_dict(), each.name: value})
        with pytest.raises((OptionError, InputError), match=str(value)):
            config.freeze()
    if each.name.endswith("buffer_size"):
        config.from_dict({**config.to_dict(), each.name: 2**63 - 1})  # sys.maxsize: no limit
        assert config.freeze().get(each.name) == 2**63 - 1


def test_engine_options_of_the_environment_act_where_they_change_in_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    assert current_options().get("profile.execution") == "TILE_PROFILE"
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps({"debug.instrument": "false"}))
    assert current_options().get("profile.execution") == "NO_PROFILE"


def test_an_option_that_nothing_reads_yet_is_said_to_be_so(caplog: pytest.LogCaptureFixture) -> None:
    config = IPUConfig()
    config.gcl_poplar_options = {"a": "1"}
    unread = [
        each
        for each in attributes()
        if each.status.endswith("not yet read") and each.type is bool and "io_tiles" not in each.name
    ]
    for each in unread[:1]:
        config.from_dict({**config.to_dict(), each.name: not each.default})
    config.freeze()
    assert len(caplog.messages) == len(unread[:1])
    assert all("nothing reads it yet" in text for text in caplog.messages)


@pytest.mark.parametrize(
    ("selected", "devices"),
    [(0, [1]), ([0, 1], [1, 1]), (16, [2]), ([24, 25], [4, 4]), (30, [16]), ((28, 10), [8, 1])],
)
def test_selected_devices_bring_their_ipus(selected: Any, devices: list[int]) -> None:
    config = IPUConfig()
    config.select_ipus = selected
    assert list(config.ipus_per_device) == devices
    config.configure_ipu_system()
    assert current_options().ipus() == devices[0]
    assert [ipu.utils.get_num_of_ipus_in_device(f"/device:IPU:{n}") for n in range(len(devices))] == devices


def test_the_system_says_which_ipu_is_modelled_unless_the_configuration_does() -> None:
    ipu.devices.use("bow-pod16")
    assert make_request("mlp").target.name == "bow"
    config = IPUConfig()
    config.ipu_model.version = "ipu21"
    assert make_request("mlp", config=config).target.name == "ipu21"
    assert make_request("mlp", config=config, target="ipu1").target.name == "ipu1"


def test_tiles_of_the_model() -> None:
    config = IPUConfig()
    config.ipu_model.tiles_per_ipu = 8
    assert make_request("mlp", config=config).target.tiles_per_ipu == 8
    config.ipu_model.tiles_per_ipu = 1473
    with pytest.raises(OptionError, match=r"ipu_model\.tiles_per_ipu is 1473.*at most 1472"):
        make_request("mlp", config=config)


def another(each: Option) -> Any:
    """A value other than the default."""
    if issubclass(each.type, Enum):
        return next(member for member in each.type if member.name not in (each.default, "PRE_COMPILE"))
    if each.choices:
        return each.choices[-1]
    made = {bool: not each.default, int: 3, float: 0.25, str: "folder", dict: {"a": "b"}}
    return made[each.type]


SET_ALONE = [each for each in attributes() if each.kind == "attribute" and not each.name.endswith("process_index")]


@pytest.mark.parametrize("each", SET_ALONE, ids=lambda each: each.name)
def test_an_assigned_option_reaches_a_compile(each: Option) -> None:
    config = IPUConfig()
    if each.name == "io_tiles.place_ops_on_io_tiles":
        config.io_tiles.num_io_tiles = 4
    owner: Any = config
    *path, last = each.name.split(".")
    for part in path:
        owner = getattr(owner, part)
    value = another(each)
    setattr(owner, last, value)
    assert config.freeze().get(each.name) == each.check(value) != each.default


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "allow_recompute": st.booleans(),
            "selection_order": st.sampled_from([each.value for each in SelectionOrder]),
            "auto_select_ipus": st.one_of(st.integers(1, 16), st.lists(st.integers(1, 4), max_size=3)),
            "matmuls.poplar_options": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
            "io_tiles.available_memory_proportion": st.floats(0, 1),
        },
    )
)
def test_saved_configurations_come_back_the_same(values: dict[str, Any]) -> None:
    config, other = IPUConfig(), IPUConfig()
    config.from_dict({**config.to_dict(), **values})
    other.from_json(config.to_json())
    assert other == config
    assert json.loads(config.to_json()) == json.loads(other.to_json())


def test_the_form_is_reached_from_here() -> None:
    assert ipu.config.form_options()[0].name == AMP
    assert len(ipu.config.form_options()) == 12


def test_its_text_documents_every_option() -> None:
    text = str(IPUConfig.__doc__)
    assert all(f".. py:attribute:: {name}\n" in text for name in IPUConfig().to_dict())
    assert ":value: StochasticRoundingBehaviour.OFF" in text


def test_a_configuration_is_pickled_by_its_values_and_a_category_is_not(caplog: pytest.LogCaptureFixture) -> None:
    config = IPUConfig()
    config.auto_select_ipus = [2, 1]
    config.scheduling.algorithm = SchedulingAlgorithm.CLUSTERING
    config.matmuls.poplar_options = {"availableMemoryProportion": "0.4"}
    config.ipu_model.tiles_per_ipu = 64
    again = pickle.loads(pickle.dumps(config))
    assert type(again) is IPUConfig
    assert again == config != IPUConfig()
    again.matmuls.poplar_options["partialsType"] = "half"
    assert config.matmuls.poplar_options == {"availableMemoryProportion": "0.4"}
    assert caplog.messages == []
    with pytest.raises(TypeError, match=r"^matmuls of a configuration cannot be pickled\. .*or keep what to_dict\(\)"):
        pickle.dumps(config.matmuls)
    assert copy.deepcopy(config.matmuls) == config.matmuls


@pytest.mark.parametrize("given", [None, "", 3, float("nan"), ["auto_select_ipus"], (1 for _ in range(2))])
def test_what_is_no_saved_configuration_is_refused_by_kind(given: object, caplog: pytest.LogCaptureFixture) -> None:
    config = IPUConfig()
    with pytest.raises(TypeError, match=r"^dct is .*\. Expected: a mapping of values by full name, as to_dict gives\."):
        config.from_dict(given)  # type: ignore[arg-type]
    if not isinstance(given, str):
        with pytest.raises(TypeError, match=r"^json_cfg is .*\. Expected: text, as to_json gives\."):
            config.from_json(given)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^attr is .*\. Expected: the name of an option or category, as text\."):
            config.get_attribute_metadata(given)  # type: ignore[arg-type]
    assert (config, caplog.messages) == (IPUConfig(), [])
