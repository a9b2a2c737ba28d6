"""Files of data: elements of feeds, inputs and variables, written and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.ipu.graphs import compiled, configure
from workbench import ipu, tf
from workbench.errors import InputError
from workbench.ipu import dataset_extractor
from workbench.ipu._files import tensors

PAIRS = [{"a": np.full((2,), number, np.float32), "b": np.int64(number)} for number in range(5)]


def test_one_file_for_each_tensor_of_an_element(tmp_path: Path) -> None:
    ipu.utils.export_dataset_to_file(PAIRS, str(tmp_path / "set.bin"), 3, feed_name="train")
    first, second = (tensors.read(tmp_path / f"set.{number}.bin") for number in (0, 1))
    assert {name: each.tolist() for name, each in first.items()} == {"train.0": [[0, 0], [1, 1], [2, 2]]}
    assert {name: each.tolist() for name, each in second.items()} == {"train.1": [0, 1, 2]}
    assert second["train.1"].dtype == np.int32  # as the IPU has them


def test_a_single_tensor_goes_to_the_file_itself_and_a_queue_names_it(tmp_path: Path) -> None:
    queue = ipu.ipu_infeed_queue.IPUInfeedQueue([np.float32(number) for number in range(4)], _internal_id=71)
    ipu.utils.export_dataset_to_file(queue, tmp_path / "feed.bin", 4)
    (name,) = tensors.read(tmp_path / "feed.bin")
    assert name == "71.0"
    assert not list(tmp_path.glob("*.partial"))


def test_the_layout_is_a_mark_a_header_and_the_numbers(tmp_path: Path) -> None:
    ipu.utils.export_dataset_to_file([np.array([1, 2], np.float32)] * 2, tmp_path / "x.bin", 2)
    raw = (tmp_path / "x.bin").read_bytes()
    length = int.from_bytes(raw[8:16], "little")
    header = json.loads(raw[20 : 20 + length])
    assert raw[:8] == b"WBTENSO2"
    assert header["tensors"][0] | {"name": ""} == {
        "name": "",
        "dtype": "float32",
        "shape": [2],
        "elements": 2,
        "offset_bytes": 0,
        "size_bytes": 16,
    }
    assert np.frombuffer(raw[20 + length :], "<f4").tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("dataset", "count", "told"),
    [
        (PAIRS, 9, "the dataset has 5 elements"),
        (PAIRS, 0, "num_elements is 0"),
        ([np.zeros(2, np.float32), np.zeros(3, np.float32)], 2, "element 1 of the dataset has another shape"),
        ([np.array(["text"])], 1, "a feed holds <U4"),
        (3, 1, "a dataset is 3"),
    ],
)
def test_what_cannot_be_exported_leaves_no_file(dataset: Any, count: int, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        ipu.utils.export_dataset_to_file(dataset, tmp_path / "set.bin", count)
    assert list(tmp_path.iterdir()) == []


def test_inputs_are_exported_under_their_names(tmp_path: Path) -> None:
    x, y = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.int32, [], name="y")
    ipu.utils.export_inputs_to_file([x, y], tmp_path / "inputs.bin", {x: [1, 2], y: 3})
    found = tensors.read(tmp_path / "inputs.bin")
    assert {name: each.tolist() for name, each in found.items()} == {"x": [1, 2], "y": 3}


def test_variables_of_a_session_go_to_a_file_and_back(tmp_path: Path) -> None:
    configure()
    with tf.variable_scope("layer"):
        weight = tf.get_variable("weight", [2], initializer=tf.constant_initializer(3.0))
    result = compiled(lambda: weight * 2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        ipu.utils.export_variables_from_live_session(session, tmp_path / "weights.bin")
        session.run(weight.assign([0.0, 0.0]))
        assert session.run(result)[0].tolist() == [0, 0]
        ipu.utils.import_data_in_live_session(session, [tmp_path / "weights.bin"])
        assert session.run(result)[0].tolist() == [6, 6]
    assert dataset_extractor.get_variable_handles([weight]) == ["layer/weight"]


def test_variables_must_match_the_files(tmp_path: Path) -> None:
    tensors.write(tmp_path / "w.bin", "variables", [tensors.Stored(name="a", values=np.zeros(2, np.float32))])
    b = tf.get_variable("b", [2])
    with pytest.raises(InputError, match=r"1 variable is in no file \(b\); 1 tensor of the files is no variable"):
        dataset_extractor.import_variables([b], [tmp_path / "w.bin"])


def test_variables_of_a_model_go_to_a_file_and_back(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="only")])
    before = np.array(model.layers[0].kernel.value)
    ipu.utils.export_variables_from_live_model(model, tmp_path / "m.bin")
    model.layers[0].kernel.assign(np.zeros((2, 1)))
    ipu.utils.import_data_in_live_model(model, [tmp_path / "m.bin"])
    assert np.array_equal(model.layers[0].kernel.value, before)
    with pytest.raises(InputError, match="2 variables are in no file"):
        ipu.utils.import_data_in_live_model(model, [])


@pytest.mark.parametrize(
    ("raw", "told"), [(b"text", "is no file of tensors"), (b"WBTENSO2" + b"\2" + b"\0" * 11 + b"{]", "damaged")]
)
def test_other_files_are_refused(raw: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(raw)
    with pytest.raises(InputError, match=told):
        tensors.read(tmp_path / "x.bin")
    ipu.utils.export_dataset_to_file([np.zeros(4, np.float32)], tmp_path / "cut.bin", 1)
    (tmp_path / "cut.bin").write_bytes((tmp_path / "cut.bin").read_bytes()[:-4])
    with pytest.raises(InputError, match="is cut short"):
        tensors.read(tmp_path / "cut.bin")


def test_variables_are_initialised_on_the_host_anyway() -> None:
    ipu.utils.move_variable_initialization_to_cpu()
    with pytest.raises(InputError, match="graph is 3"):
        ipu.utils.move_variable_initialization_to_cpu(3)
