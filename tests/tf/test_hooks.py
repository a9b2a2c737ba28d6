"""`tf` knows neither its compiler nor `ipu`; the package tells it, whichever name of it comes first."""

from __future__ import annotations

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


def test_tensorflow_python_has_ipu() -> None:
    assert tf.python.ipu is ipu
    with pytest.raises(AttributeError, match="has no attribute 'gpu'"):
        tf.python.gpu  # noqa: B018


def test_what_was_not_told_is_an_error_with_a_way_out() -> None:
    hook: Hook[int] = Hook("the answer", "ask again")
    with pytest.raises(WorkbenchError, match=r"^tf was not told where the answer is\. To mend it: ask again\.$"):
        hook.get()
    hook.set(lambda: 42)
    assert hook.get() == 42
