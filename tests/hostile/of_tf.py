"""What `wb.tf` has beside its operations: variables, scopes, random numbers, control, optimizers, datasets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import workbench as wb
from tests.hostile.surface import Call, call

tf = wb.tf


class Pieces:
    """A graph with what is fed, a variable that is not initialised yet, what depends on both, and a session."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x = tf.placeholder("float32", [2], name="x")
            self.variable = tf.get_variable("weight", initializer=np.array([1.0, 2.0], "float32"))
            self.y = self.x * self.variable
            self.loss = tf.reduce_sum(self.y)
            self.scope = tf.get_variable_scope()
            with tf.GradientTape(persistent=True) as self.tape:
                self.squared = self.variable * self.variable
            self.session = tf.Session(graph=self.graph)
            self.session.run(tf.global_variables_initializer())


def numbers() -> Any:
    return tf.data.Dataset.range(4)


def doubled(value: Any) -> Any:
    return value + value


ONE = {"dtype": "float32"}
# What an ordinary call gives, made of the pieces where it is a function.
FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "Variable": {"initial_value": [1.0, 2.0]},
    "get_variable": {"name": "other", "shape": [2]},
    "variable_scope": {"name_or_scope": "scope"},
    "constant_initializer": {},
    "zeros_initializer": {},
    "ones_initializer": {},
    "random_normal_initializer": {},
    "random_uniform_initializer": {},
    "truncated_normal_initializer": {},
    "glorot_normal_initializer": {},
    "glorot_uniform_initializer": {},
    "random.uniform": {"shape": [2, 2]},
    "random.normal": {"shape": [2, 2]},
    "random.truncated_normal": {"shape": [2, 2]},
    "nn.dropout": {"x": lambda pieces: pieces.x, "rate": 0.5},
    "set_random_seed": {"seed": 1},
    "placeholder": {"dtype": "float32"},
    "device": {"device_name": "/device:IPU:0"},
    "name_scope": {"name": "scope"},
    "control_dependencies": {"control_inputs": lambda pieces: [pieces.y]},
    "group": {"inputs": (lambda pieces: pieces.y,)},
    "no_op": {},
    "tuple": {"tensors": lambda pieces: [pieces.y]},
    "variables_initializer": {"var_list": lambda pieces: [pieces.variable]},
    "global_variables": {},
    "trainable_variables": {},
    "add_to_collection": {"name": "mine", "value": 3},
    "get_collection": {"key": "variables"},
    "assign": {"ref": lambda pieces: pieces.variable, "value": 2.0},
    "assign_add": {"ref": lambda pieces: pieces.variable, "value": 2.0},
    "assign_sub": {"ref": lambda pieces: pieces.variable, "value": 2.0},
    "py_function": {"func": lambda pieces: doubled, "inp": lambda pieces: [pieces.x], "Tout": "float32"},
    "cond": {
        "pred": lambda pieces: pieces.loss > 0.0,
        "true_fn": lambda pieces: lambda: pieces.x,
        "false_fn": lambda pieces: lambda: pieces.y,
    },
    "while_loop": {
        "cond": lambda pieces: lambda value: value < 9.0,
        "body": lambda pieces: lambda value: [value + 1.0],
        "loop_vars": lambda pieces: [pieces.loss],
    },
    "custom_gradient": {"f": lambda pieces: doubled},
    "gradients": {"ys": lambda pieces: pieces.y, "xs": lambda pieces: [pieces.x]},
    "clip_by_global_norm": {"t_list": lambda pieces: [pieces.x], "clip_norm": 0.5},
    "convert_to_tensor": {"value": 2.0},
    "as_dtype": {"type_value": "float32"},
    "is_tensor": {"value": 3},
    "TensorShape": {"dims": [2, None]},
    "train.Optimizer": {},
    "train.GradientDescentOptimizer": {"learning_rate": 0.1},
    "train.MomentumOptimizer": {"learning_rate": 0.1, "momentum": 0.9},
    "train.AdamOptimizer": {},
    "train.RMSPropOptimizer": {"learning_rate": 0.1},
    "train.get_global_step": {},
    "train.get_or_create_global_step": {},
    "GradientTape": {},
    "InteractiveSession": {},
    "function": {"func": lambda pieces: doubled},
    "TensorSpec": {"shape": [2]},
    "disable_eager_execution": {},
}
OF_GRADIENTS = {"grads_and_vars": lambda pieces: [(pieces.variable + 1.0, pieces.variable)]}
METHODS: Mapping[str, tuple[Callable[[Any], Any], Mapping[str, Any]]] = {
    "Variable.assign": (lambda pieces: pieces.variable, {"value": 2.0}),
    "Variable.assign_add": (lambda pieces: pieces.variable, {"delta": 2.0}),
    "Variable.assign_sub": (lambda pieces: pieces.variable, {"delta": 2.0}),
    "Variable.load": (lambda pieces: pieces.variable, {"value": [3.0, 4.0]}),
    "Variable.eval": (lambda pieces: pieces.variable, {"session": lambda pieces: pieces.session}),
    "VariableScope.set_use_resource": (lambda pieces: pieces.scope, {"use_resource": True}),
    "constant_initializer.__call__": (lambda pieces: tf.constant_initializer(2.0), {"shape": [2]}),
    "glorot_uniform_initializer.__call__": (lambda pieces: tf.glorot_uniform_initializer(), {"shape": [2]}),
    "Graph.get_operation_by_name": (lambda pieces: pieces.graph, {"name": "x"}),
    "Graph.get_tensor_by_name": (lambda pieces: pieces.graph, {"name": "x:0"}),
    "Graph.get_collection": (lambda pieces: pieces.graph, {"name": "variables"}),
    "Graph.add_to_collection": (lambda pieces: pieces.graph, {"name": "mine", "value": 3}),
    **{
        f"Optimizer.{name}": (lambda pieces: tf.train.AdamOptimizer(), given)
        for name, given in (
            ("compute_gradients", {"loss": lambda pieces: pieces.loss}),
            ("apply_gradients", OF_GRADIENTS),
            ("minimize", {"loss": lambda pieces: pieces.loss}),
            ("get_slot", {"var": lambda pieces: pieces.variable, "name": "m"}),
        )
    },
    "GradientTape.watch": (lambda pieces: pieces.tape, {"tensor": lambda pieces: pieces.x}),
    "GradientTape.gradient": (
        lambda pieces: pieces.tape,
        {"target": lambda pieces: pieces.squared, "sources": lambda pieces: pieces.variable},
    ),
    "Dataset.from_tensor_slices": (lambda pieces: tf.data.Dataset, {"tensors": [1.0, 2.0]}),
    "Dataset.from_tensors": (lambda pieces: tf.data.Dataset, {"tensors": [1.0, 2.0]}),
    "Dataset.from_generator": (lambda pieces: tf.data.Dataset, {"generator": lambda pieces: lambda: iter([1, 2])}),
    "Dataset.range": (lambda pieces: tf.data.Dataset, {"args": (4,)}),
    "Dataset.zip": (lambda pieces: tf.data.Dataset, {"datasets": (lambda pieces: numbers(), lambda pieces: numbers())}),
    "Dataset.map": (lambda pieces: numbers(), {"map_func": lambda pieces: doubled}),
    "Dataset.filter": (lambda pieces: numbers(), {"predicate": lambda pieces: bool}),
    "Dataset.batch": (lambda pieces: numbers(), {"batch_size": 2}),
    "Dataset.concatenate": (lambda pieces: numbers(), {"dataset": lambda pieces: numbers()}),
    "Dataset.enumerate": (lambda pieces: numbers(), {}),
    "Dataset.shard": (lambda pieces: numbers(), {"num_shards": 4, "index": 1}),
    "Dataset.apply": (lambda pieces: numbers(), {"transformation_func": lambda pieces: lambda data: data.take(2)}),
    "Dataset.repeat": (lambda pieces: numbers(), {"count": 2}),
    "Dataset.shuffle": (lambda pieces: numbers(), {"buffer_size": 2}),
    "Dataset.take": (lambda pieces: numbers(), {"count": 2}),
    "Dataset.skip": (lambda pieces: numbers(), {"count": 2}),
    "Dataset.prefetch": (lambda pieces: numbers(), {}),
    "Dataset.cache": (lambda pieces: numbers(), {}),
    "Dataset.with_options": (lambda pieces: numbers(), {"options": lambda pieces: tf.data.Options()}),
}


def cells() -> Iterator[Call]:
    for name, given in FUNCTIONS.items():
        space, _, last = name.rpartition(".")
        function = getattr(getattr(tf, space) if space else tf, last)
        yield call(f"tf.{name}", in_graph(lambda pieces, f=function: f, function), given=given)
    for name, (owner, given) in METHODS.items():
        last = name.rpartition(".")[2]
        method = getattr(owner(Pieces()), last)
        yield call(f"tf.{name}", in_graph(lambda pieces, o=owner, n=last: getattr(o(pieces), n), method), given=given)


def in_graph(found: Callable[[Any], Any], like: Any) -> Callable[..., Any]:
    """What is called in a graph of its own, entered where it is a scope, gone through where it is a dataset."""

    def called(*args: Any, **given: Any) -> Any:
        pieces = Pieces()

        def made(value: Any) -> Any:
            return value(pieces) if getattr(value, "__name__", "") == "<lambda>" else value

        with pieces.graph.as_default():
            result = found(pieces)(*map(made, args), **{name: made(value) for name, value in given.items()})
            if isinstance(result, tf.data.Dataset):
                return [each for each, _ in zip(result, range(8), strict=False)]
            if hasattr(result, "__enter__") and not isinstance(result, tf.GradientTape):
                with result as inside:
                    return inside
            return result

    called.__signature__ = inspect.signature(like)  # type: ignore[attr-defined]
    return called
