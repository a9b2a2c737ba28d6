"""`tf` knows neither its compiler nor `ipu`; the package tells it, whichever name of it comes first."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from workbench import ipu, tf
from workbench.errors import WorkbenchError
from workbench.tf._hooks import Hook

PROGRAM = """
import sys
import workbench.tf as tf

assert not {"jax", "keras", "workbench.executable"} & set(sys.modules)
given = tf.placeholder(tf.float32, (2,))
with tf.device("/device:IPU:0"):
    doubled = given * 2
with tf.Session() as session:
    print(session.run(doubled, {given: [1, 2]}).tolist(), session.profile.fits)
"""


def test_tf_alone_compiles_for_the_ipu() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("[2.0, 4.0] True\n", 0), done.stderr


FIRST_OPERATOR = """
import numpy as np

from workbench import ipu, tf

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
whole = np.array([1, 2, 3], np.int32)


def types():
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        made = ipu.ipu_compiler.compile(lambda x: [x * 3, x / 2, x > 1, x[1:], -x, 7 - x], [whole])
    return [(str(each.dtype), each.op.type) for each in made]


before = types()  # no name of tf was used
tf.constant(1)
assert before == types(), (before, types())
print(before)
"""


def test_operators_are_the_same_before_the_first_name_of_tf() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_OPERATOR], capture_output=True, text=True, timeout=120)
    names = ["multiply", "divide", "greater", "StridedSlice", "negative", "subtract"]
    types = ["int32", "float32", "bool", "int32", "int32", "int32"]
    assert (done.stdout, done.returncode) == (f"{list(zip(types, names, strict=True))}\n", 0), done.stderr


def test_tensorflow_python_has_ipu() -> None:
    assert tf.python.ipu is ipu
    with pytest.raises(AttributeError, match="has no attribute 'gpu'"):
        tf.python.gpu  # noqa: B018


def test_modules_of_tensorflow_python_lead_to_what_they_hold() -> None:
    from workbench.tf.python.keras import layers

    from workbench.tf.python.client.session import Session
    from workbench.tf.python.data.ops.dataset_ops import Dataset
    from workbench.tf.python.framework.constant_op import constant

    assert (Session, Dataset, constant) == (tf.Session, tf.data.Dataset, tf.constant)
    assert layers is tf.python.keras.layers is tf.keras.layers
    with pytest.raises(ImportError, match="nowhere"):
        importlib.import_module("workbench.tf.python.keras.nowhere")


def test_what_was_not_told_is_an_error_with_a_way_out() -> None:
    hook: Hook[int] = Hook("the answer", "ask again")
    with pytest.raises(WorkbenchError, match=r"^tf was not told where the answer is\. To mend it: ask again\.$"):
        hook.get()
    hook.set(lambda: 42)
    assert hook.get() == 42
