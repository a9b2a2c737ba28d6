"""Keras must compute with JAX before any test module imports it; `import workbench` sees to that."""

import workbench  # noqa: F401
from tests.quick_weights import quick_weights  # noqa: F401
