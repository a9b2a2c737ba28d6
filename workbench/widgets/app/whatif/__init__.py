"""What if: what can be moved about a compiled model, and the picture, or the curve, that a move makes.

`knobs` says what can be moved and what a position asks for, `newest` compiles the position that was asked for last,
`picture` is what is drawn of a result over the earlier one, `panel` is the widget. Imports what the app may. Tests:
tests/widgets/app/whatif.
"""

from workbench.widgets.app.whatif.knobs import Basis
from workbench.widgets.app.whatif.panel import WhatIf

__all__ = ["Basis", "WhatIf"]
