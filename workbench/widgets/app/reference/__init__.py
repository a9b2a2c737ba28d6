"""The reference in the app: every option and every public name, searched, without a network.

`reference.json` is written by `make reference` out of the declarations. Tests: tests/reference, tests/widgets/app.
"""

from workbench.widgets.app.reference.panel import ReferencePanel

__all__ = ["ReferencePanel"]
