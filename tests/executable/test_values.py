"""Values of another kind or range than an argument has, and mistakes people make: ours, with what would be right."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import keras
import numpy as np
import pytest

import workbench as wb
from workbench.errors import InputError, WorkbenchError
from workbench.executable import compile_request, make_request

TARGET = wb.target("ipu2", tiles_per_ipu=8)
KIND = jax.ShapeDtypeStruct((8, 8), "float32")


def model() -> Any:
    return keras.Sequential(
        [keras.Input((16,)), keras.layers.Dense(16, name="dense"), keras.layers.Dense(4, name="last")]
    )


def compiled(**arguments: Any) -> Any:
    return wb.compile(model(), **{"target": TARGET, "batch_size": 4, "mode": "training", **arguments})


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"mode": "train"}, "mode is 'train'. Expected: 'training', 'inference' or None."),
    ({"mode": ["training"]}, "mode is ['training']. Expected:"),
    ({"batch_size": 0}, "batch_size is 0. Expected: a whole number of at least 1."),
    ({"batch_size": 2.0}, "batch_size is 2.0. Expected: a whole number of at least 1."),
    ({"batch_size": True}, "batch_size is True. Expected:"),
    ({"batch_size": "4"}, "batch_size is '4'. Expected:"),
    ({"replicas": 0}, "replicas is 0. Expected: a whole number of at least 1."),
    ({"replicas": 1.5}, "replicas is 1.5. Expected:"),
    ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps is 0. Expected: a whole number of at least 1."),
    ({"gradient_accumulation_steps": [2]}, "gradient_accumulation_steps is [2]. Expected:"),
    ({"stages": "dense"}, "stages is 'dense'. Expected: a list. To mend it: write stages=['dense']."),
    ({"stages": 2}, "stages is 2. Expected: a list. To mend it: write stages=[0, 0, 1], a stage for each layer, or"),
    ({"stages": {"dense": 0}}, "stages is {'dense': 0}. Expected: a list."),
    ({"stages": [0, 1.0]}, "a stage is 1.0. Expected: a whole number of at least 0."),
    ({"stages": ["nosuch"]}, "there is no layer 'nosuch' to cut after. Expected: one of: dense"),
    ({"device_mapping": 3}, "device_mapping is 3. Expected: a list. To mend it: write device_mapping=[0, 1]."),
    ({"device_mapping": "01"}, "device_mapping is '01'. Expected: a list."),
    ({"device_mapping": [0, "1"]}, "an IPU in device_mapping is '1'. Expected: a whole number of at least 0."),
    ({"device_mapping": [-1]}, "an IPU in device_mapping is -1. Expected:"),
    ({"recomputation_checkpoints": 3}, "recomputation_checkpoints is 3. Expected: a list."),
    ({"recomputation_checkpoints": [3]}, "recomputation_checkpoints names 3. Expected: names or patterns of layers."),
    ({"offload": {"weights": False}}, "offload is {'weights': False}. Expected: names in a tuple."),
    ({"offload": 3}, "offload is 3. Expected: names in a tuple."),
    ({"offload": ("momenta",)}, "offload names 'momenta'. Expected: any of: weights, activations,"),
    ({"offload": ({},)}, "offload names {}. Expected: any of:"),
    ({"config": {"auto_select_ipus": 1}}, "config is {'auto_select_ipus': 1}. Expected: an ipu.config.IPUConfig."),
    ({"config": wb.ipu.config.IPUConfig}, "config is <class 'workbench.ipu.config.config.IPUConfig'>. Expected:"),
    ({"target": 3}, "target is 3. Expected: a name in wb.targets or a Target."),
    ({"target": "ipu3"}, "unknown target 'ipu3'. Expected: one of: ipu1, ipu2, bow, ipu21."),
    ({"precision": "half"}, "precision is 'half'. Expected: one of: float32, float16, mixed_float16."),
    ({"precision": []}, "precision is []. Expected:"),
    ({"loss": "nosuch"}, "loss is 'nosuch'. Expected: a loss of keras.losses, its name, or a function"),
    ({"loss": "mean_square_error"}, "loss is 'mean_square_error'. Expected:"),
    ({"loss": 3}, "loss is 3. Expected:"),
    ({"loss": ["nosuch"]}, "loss is 'nosuch'. Expected:"),
    ({"optimizer": "nosuch"}, "optimizer is 'nosuch'. Expected:"),
    ({"optimizer": 3}, "optimizer is 3. Expected:"),
    ({"optimizer": keras.optimizers.SGD}, "optimizer is <class "),
    ({"pipeline_schedule": "grouped"}, "pipeline_schedule is 'grouped'. Expected: one of: 'Grouped',"),
    ({"recomputation": "Twice"}, "recomputation is 'Twice'. Expected: True, False, or one of: 'Auto',"),
    ({"execution_profile": "all"}, "execution_profile is 'all'. Expected: one of:"),
    ({"progress": "bar"}, "progress is 'bar'. Expected: a function of the name of a phase."),
    ({"progress": lambda: None}, "progress is <function "),  # was Python's own TypeError at the first phase
    ({"options": {}}, "wb.profile has no argument 'options'. Expected: any of: config,"),
    ({"batchsize": 4}, "wb.profile has no argument 'batchsize'."),
    ({"inputs": KIND}, "wb.profile has no argument 'inputs'."),
]


@pytest.mark.parametrize(("arguments", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_mistake_is_named_with_what_would_be_right(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(WorkbenchError) as caught:
        wb.profile(model(), **{"target": TARGET, "batch_size": 4, "mode": "training", **arguments})
    assert str(caught.value).startswith(text)


def test_what_to_write_instead() -> None:
    for arguments, todo in [
        ({"options": {}}, "set options on an ipu.config.IPUConfig and give it as config="),
        ({"batchsize": 4}, "did you mean 'batch_size'?"),
        ({"ipus": 4}, "set config.auto_select_ipus to their number, and give config= and stages='auto'"),
        ({"dtype": "float16"}, "give precision='float16', or a model that is built in the type"),
        ({"stages": 2}, "write stages=[0, 0, 1], a stage for each layer, or stages=wb.autosplit(model, 2)"),
        ({"loss": "mean_square_error", "batch_size": 4, "mode": "training"}, "did you mean 'mean_squared_error'?"),
    ]:
        for call in (wb.profile, wb.compile):
            with pytest.raises(WorkbenchError) as caught:
                call(model(), **arguments)
            assert caught.value.todo == todo


def test_schedules_name_their_own_call() -> None:
    with pytest.raises(wb.InputError, match=r"^wb\.compare_schedules has no argument 'stage'"):
        wb.compare_schedules(model(), 2, stage=[0, 1])
    with pytest.raises(
        wb.InputError, match=r"^the function '<lambda>' has no layers to cut, and wb\.compare_schedules"
    ):
        wb.compare_schedules(lambda x: x, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": np.int64(4), "gradient_accumulation_steps": np.int32(2), "replicas": np.int8(2)},
        {"stages": np.array([0, 1]), "device_mapping": np.array([0, 1]), "gradient_accumulation_steps": 4},
        {"stages": ("dense",), "device_mapping": (0, 1), "gradient_accumulation_steps": np.uint8(4)},
        {"recomputation": True, "recomputation_checkpoints": "dense"},
        {"offload": {"weights"}},
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_numbers_of_numpy_and_single_names_are_read(arguments: dict[str, Any]) -> None:
    plain = {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in arguments.items()
    }
    if "recomputation_checkpoints" in plain:
        plain["recomputation_checkpoints"] = ("dense",)
    found, expected = compiled(**arguments).profile, compiled(**plain).profile
    assert found.total_cycles == expected.total_cycles
    assert found.config == expected.config


def test_arrays_that_are_named_are_to_be_given_by_place() -> None:
    def product(a: Any, b: Any) -> Any:
        return a @ b

    executable = wb.compile(product, KIND, KIND, target=TARGET)
    array = np.ones(KIND.shape, KIND.dtype)
    for call, place in (
        (lambda: wb.compile(product, KIND, b=KIND), "wb.compile(function, x, y)"),
        (lambda: wb.compile(product, inputs=(KIND, KIND)), "wb.compile(function, x, y)"),
        (lambda: wb.profile(product, KIND, b=KIND), "wb.profile(function, x, y)"),
        (lambda: executable.run(array, b=array), "run(x, y)"),
    ):
        with pytest.raises(wb.InputError) as caught:
            call()
        assert place in caught.value.todo
        assert "by place" in caught.value.todo
    with pytest.raises(TypeError, match=r"run\(\*args, sample_weight=None\).*did you mean 'sample_weight'"):
        executable.run(array, array, sample_weights=array)


def test_a_profile_is_pickled_and_an_executable_says_so() -> None:
    executable = wb.compile(lambda a: a + 1, KIND, target=TARGET)
    again = pickle.loads(pickle.dumps(executable.profile))
    assert again.total_cycles == executable.profile.total_cycles
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"Executable cannot be pickled.*executable\.profile\.save\(path\)"):
            call(executable)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fits", ": did you mean 'profile.fits'?"),
        ("verdict", ": did you mean 'profile.summary'?"),
        ("to_html", ": did you mean 'profile.to_html'?"),
        ("liveness", ": did you mean 'profile.liveness'?"),
        ("diagnose", ": write wb.diagnose(executable)"),
        ("progam", ": did you mean 'program'?"),
        ("nothing_like_it", ""),
    ],
)
def test_what_the_profile_has_is_said_where_an_executable_is_asked(name: str, told: str) -> None:
    executable = wb.compile("mlp", batch_size=2)
    with pytest.raises(AttributeError) as caught:
        getattr(executable, name)
    assert str(caught.value) == f"'Executable' object has no attribute {name!r}{told}"
    assert "profile" not in vars(executable)  # nothing is collected for it
    assert not hasattr(executable, "_repr_png_")


def test_an_error_inside_an_executable_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(executable: object) -> None:
        raise AttributeError("'dict' object has no attribute 'rows'")

    executable = wb.compile("mlp", batch_size=2)
    monkeypatch.setattr(type(executable), "program", property(broken))
    with pytest.raises(AttributeError, match=r"^'dict' object has no attribute 'rows'$"):
        executable.program  # noqa: B018


def test_a_function_says_what_it_takes() -> None:
    def product(a: Any, b: Any) -> Any:
        return a @ b

    for given, word in (((), "no inputs"), ((KIND,), "1 input"), ((KIND,) * 3, "3 inputs")):
        with pytest.raises(wb.InputError) as caught:
            wb.compile(product, *given)
        assert caught.value.what.startswith(f"the function 'product'(a: 'Any', b: 'Any') -> 'Any' was given {word}: ")
        assert "write wb.compile(product, jax.ShapeDtypeStruct(" in caught.value.todo


def test_an_error_inside_a_builder_is_its_own() -> None:
    def builder() -> Any:
        raise TypeError("the builder's own")

    with pytest.raises(TypeError, match="the builder's own"):
        wb.compile(builder)


def test_where_this_machine_s_memory_ends_the_sizes_are_said() -> None:
    """1,024 numbers of 4 bytes, for 4 tiles of 624 KiB."""

    def no_room(phase: str) -> None:
        if phase == "lower":
            raise MemoryError("no 149 GiB in one piece")

    numbers = jax.ShapeDtypeStruct((1024,), "float32")
    request = make_request(lambda x: x + 1, numbers, target=wb.target("ipu2", tiles_per_ipu=4))
    with pytest.raises(InputError) as caught:
        compile_request(request, no_room)
    assert "takes 4.0 KiB, and 1 IPU has 2.4 MiB" in str(caught.value)
    assert caught.value.todo
