"""The layer-by-layer builder: kinds of layers as data, rows of them, and the Keras code that they are.

`kinds` has what each kind takes, gives and holds; `layers` is a model of rows, with shapes, parameters and problems of
each, and its code; `rows` is the widget. Imports what the app may. Tests: tests/widgets/app/builder.
"""

from workbench.widgets.app.builder.rows import Builder

__all__ = ["Builder"]
