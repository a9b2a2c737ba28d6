"""The interactive workbench: choose a model and options, compile, look, and mend what does not fit, all by clicks.

Imports views, and what compiles. Tests: tests/widgets/app.
"""

from workbench.widgets.app.app import App
from workbench.widgets.app.history import difference

__all__ = [
    "App",
    "difference",
]
