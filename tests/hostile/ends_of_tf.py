"""How cells of `wb.tf` end beside its operations: which classes of value give a result, or a stranger's own error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

TEXTS = "empty text|controls|markup|parent|turned|half a character|device path"
WHOLE = "negative|past 64 bits|10**18"
FINITE = f"{WHOLE}|zero|float|numpy scalar"
NUMBERS = f"{FINITE}|nan|infinite"
ARRAYS = "numpy array|empty list"
ONE = "true|negative|zero|float|nan|infinite|numpy scalar"
NARROW = f"{ONE}|{ARRAYS}"  # whole numbers are of 32 bits
SIZES = "zero|numpy scalar|empty list"
EVERY = (
    f"none|true|{NUMBERS}|{ARRAYS}|numpy objects|{TEXTS}|bytes|nested list|in itself|dict|set|callable|class|stranger|"
    "profile|executable|target|config"
)
OPTIMIZERS = ("Optimizer", "GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer", "RMSPropOptimizer")
DRAWN = ("uniform", "normal", "truncated_normal")
SEEDED = ("random_normal", "random_uniform", "truncated_normal", "glorot_normal", "glorot_uniform")
UPDATES = ("assign", "assign_add", "assign_sub")

# Arguments by what they are, "call.argument" without "tf.".
SWITCHES = (
    *(f"Variable.{name}" for name in ("trainable", "use_resource", "deferred")),
    *(f"get_variable.{name}" for name in ("trainable", "validate_shape", "use_resource")),
    *("variable_scope.reuse", "variable_scope.use_resource", "constant_initializer.verify_shape"),
    *(f"random.{name}.deferred" for name in DRAWN),
    *("assign.validate_shape", "gradients.colocate_gradients_with_ops", "cond.strict"),
    *("while_loop.back_prop", "while_loop.return_same_structure"),
    *(f"{name}.use_locking" for name in UPDATES),
    *(f"Variable.{name}.{argument}" for name in UPDATES for argument in ("use_locking", "read_value")),
    *(f"train.{name}.use_locking" for name in OPTIMIZERS),
    *("train.MomentumOptimizer.use_nesterov", "train.RMSPropOptimizer.centered"),
    *("GradientTape.persistent", "GradientTape.watch_accessed_variables"),
    "VariableScope.set_use_resource.use_resource",
    *(f"Optimizer.{name}.colocate_gradients_with_ops" for name in ("compute_gradients", "minimize")),
    *("Dataset.map.deterministic", "Dataset.batch.drop_remainder", "Dataset.batch.deterministic"),
    "Dataset.shuffle.reshuffle_each_iteration",
)
NAMES = (
    *("Variable.name", "Variable.role", "get_variable.name", "variable_scope.name_or_scope"),
    *("variable_scope.default_name", "placeholder.name", "name_scope.default_name", "group.name", "no_op.name"),
    *(f"random.{name}.name" for name in DRAWN),
    *("nn.dropout.name", "tuple.name", "variables_initializer.name", "py_function.name", "cond.name"),
    "while_loop.name",
    *("global_variables.scope", "trainable_variables.scope", "gradients.name", "convert_to_tensor.name"),
    *(f"{name}.name" for name in UPDATES),
    *(f"Variable.{name}.name" for name in UPDATES),
    *(f"train.{name}.name" for name in OPTIMIZERS),
    *("Graph.get_collection.name", "Graph.get_collection.scope", "Graph.add_to_collection.name"),
    *("get_collection.key", "get_collection.scope", "add_to_collection.name"),
    *(f"Optimizer.{name}.name" for name in ("apply_gradients", "minimize", "get_slot")),
)
GATES = ("gradients", "Optimizer.compute_gradients", "Optimizer.minimize")
RATES = (
    *("MomentumOptimizer.momentum", "AdamOptimizer.beta1", "AdamOptimizer.beta2", "AdamOptimizer.epsilon"),
    *(f"RMSPropOptimizer.{name}" for name in ("decay", "momentum", "epsilon")),
)


def each(names: Iterable[str], ends: str) -> dict[str, str]:
    return {f"tf.{name}": ends for name in names}


RESULTS: Mapping[str, str] = {
    **each(SWITCHES, "true"),
    **each((f"Variable.{name}.use_locking" for name in UPDATES), "true|none"),
    **each(("get_variable.trainable", "get_variable.use_resource", "variable_scope.reuse"), "true|none"),
    **each(("variable_scope.use_resource", "assign.validate_shape", "Variable.deferred"), "true|none"),
    **each((f"{name}.use_locking" for name in UPDATES), "true|none"),
    **each(("Dataset.map.deterministic", "Dataset.batch.deterministic"), "true|none"),
    **each(("Dataset.shuffle.reshuffle_each_iteration",), "true|none"),
    **each(NAMES, f"none|{TEXTS}"),
    # names that nothing stands for: there is none by default
    **each(("get_variable.name", "Graph.get_collection.name", "Graph.add_to_collection.name"), TEXTS),
    **each(("get_collection.key", "add_to_collection.name"), TEXTS),
    **each(("variable_scope.name_or_scope", "gradients.name", "variables_initializer.name", "Variable.role"), TEXTS),
    **each((f"train.{name}.name" for name in OPTIMIZERS), TEXTS),
    **each(("Optimizer.get_slot.name",), TEXTS),
    "tf.name_scope.name": f"none|{TEXTS}",
    "tf.device.device_name": "none|empty text",
    # first values, shapes and what is drawn
    **each(("Variable.initial_value", "constant_initializer.value"), f"true|{NUMBERS}|{ARRAYS}"),
    "tf.variable_scope.initializer": f"none|true|{NUMBERS}|{ARRAYS}|callable|class",
    **each(("variable_scope.regularizer", "variable_scope.custom_getter"), "none|callable|class"),
    **each(("get_variable.shape", "constant_initializer.__call__.shape"), SIZES),
    **each(("glorot_uniform_initializer.__call__.shape", *(f"random.{name}.shape" for name in DRAWN)), SIZES),
    "tf.get_variable.shape": f"none|{SIZES}|10**18",  # abstract until it is initialised
    "tf.Variable.shape": "none|numpy scalar",
    "tf.placeholder.shape": "none|empty list",
    "tf.TensorShape.dims": "none|empty list",
    **each(("Variable.collections",), "empty list"),
    "tf.get_variable.collections": "none|empty list",
    **each((f"{name}_initializer.{part}" for name in SEEDED[:3:2] for part in ("mean", "stddev")), FINITE),
    **each((f"random_uniform_initializer.{part}" for part in ("minval", "maxval")), FINITE),
    **each((f"{name}_initializer.seed" for name in SEEDED), f"none|zero|{WHOLE}|numpy scalar"),
    **each((*(f"random.{name}.seed" for name in DRAWN), "nn.dropout.seed"), f"none|zero|{WHOLE}|numpy scalar"),
    "tf.set_random_seed.seed": f"zero|{WHOLE}|numpy scalar",
    "tf.Dataset.shuffle.seed": f"none|zero|{WHOLE}|numpy scalar",
    **each((f"random.{name}.{part}" for name in DRAWN[1:] for part in ("mean", "stddev")), f"{FINITE}|numpy array"),
    "tf.random.uniform.minval": f"{FINITE}|numpy array",
    "tf.random.uniform.maxval": f"none|{FINITE}|numpy array",
    "tf.nn.dropout.x": f"float|nan|infinite|{ARRAYS}",
    "tf.nn.dropout.rate": "zero",
    # what is waited for, run or differentiated
    **each(("variable_scope.values", "name_scope.values"), f"none|true|{ARRAYS}|{NUMBERS}|numpy objects"),
    "tf.control_dependencies.control_inputs": "none|empty list",
    "tf.group.inputs": "none|numpy array|numpy objects|empty list",
    "tf.tuple.control_inputs": "none|empty list",
    "tf.variables_initializer.var_list": "empty list",
    **each((f"{name}.value" for name in UPDATES), f"true|{NUMBERS}"),
    **each(("Variable.assign.value", "Variable.assign_add.delta", "Variable.assign_sub.delta"), f"true|{NUMBERS}"),
    "tf.gradients.stop_gradients": "none|empty list",
    **each((f"{name}.gate_gradients" for name in GATES), "true|zero"),
    **each((f"train.{name}.learning_rate" for name in OPTIMIZERS), f"{FINITE}|callable|class"),
    **each((f"train.{name}" for name in RATES), FINITE),
    "tf.while_loop.parallel_iterations": "numpy scalar",
    "tf.while_loop.swap_memory": "zero",
    "tf.while_loop.maximum_iterations": "none|zero|numpy scalar",
    "tf.custom_gradient.f": "callable|class",
    "tf.cond.pred": "true|negative|zero|float|nan|infinite|numpy scalar",
    **each(("gradients.ys", "gradients.xs", "convert_to_tensor.value", "Optimizer.compute_gradients.loss"), NARROW),
    **each((f"Optimizer.{name}.grad_loss" for name in ("compute_gradients", "minimize")), f"none|{ONE}"),
    "tf.Variable.eval.session": "",  # there is no default one
    # anything
    **each(("is_tensor.value", "Graph.add_to_collection.value", "add_to_collection.value"), EVERY),
    "tf.function.func": "none|callable|class",
    "tf.function.input_signature": "none|empty list",
    "tf.function.autograph": "true",
    **each(("function.jit_compile", "function.experimental_compile"), "none|true"),
    "tf.TensorSpec.shape": "none|empty list",
    "tf.TensorSpec.name": f"none|{TEXTS}",
    "tf.InteractiveSession.target": "empty text",
    "tf.InteractiveSession.config": "none",
    "tf.InteractiveSession.graph": "none",
    "tf.GradientTape.gradient.target": "",
    "tf.GradientTape.gradient.sources": "empty list",
    "tf.GradientTape.gradient.unconnected_gradients": "none",
    "tf.GradientTape.watch.tensor": "empty list",
    # datasets
    "tf.Dataset.from_tensors.tensors": f"none|true|{NUMBERS}|{ARRAYS}|{TEXTS}|bytes|dict",
    "tf.Dataset.from_tensor_slices.tensors": "numpy array|empty list",
    "tf.Dataset.from_generator.args": "none|empty list",
    "tf.Dataset.range.args": "negative|zero|10**18|numpy scalar",
    **each(("clip_by_global_norm.clip_norm",), "negative|zero|float|nan|infinite|numpy scalar"),
    **each(("clip_by_global_norm.name",), f"none|{TEXTS}"),
    **each(("clip_by_global_norm.use_norm",), "none|negative|zero|float|nan|infinite|numpy scalar"),
    "tf.Dataset.enumerate.start": "negative|zero|10**18|numpy scalar",
    "tf.Dataset.shard.num_shards": "numpy scalar",
    "tf.Dataset.shard.index": "zero|numpy scalar",
    **each(("Dataset.map.num_parallel_calls", "Dataset.batch.num_parallel_calls"), "none|negative|numpy scalar"),
    "tf.Dataset.prefetch.buffer_size": "negative|zero|numpy scalar",
    "tf.Dataset.repeat.count": "none|negative|zero|numpy scalar",
    **each(("Dataset.take.count", "Dataset.skip.count"), "negative|zero|numpy scalar"),
    **each(("Dataset.batch.batch_size", "Dataset.shuffle.buffer_size"), "numpy scalar"),
    "tf.Dataset.cache.filename": "empty text",
}
OWN: Mapping[str, str] = {
    **each(("Variable.initial_value", "get_variable.initializer", "get_variable.custom_getter"), "callable"),
    **each(("while_loop.cond", "while_loop.body"), "callable|class"),
    **each(("cond.true_fn", "cond.false_fn", "Dataset.from_generator.generator"), "callable"),
    **each(("get_variable.regularizer", "py_function.func"), "callable|class"),
    **each(("Dataset.map.map_func", "Dataset.filter.predicate", "Dataset.apply.transformation_func"), "callable|class"),
}
