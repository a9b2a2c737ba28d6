"""The form of the app: the model that is chosen, how it is run and its options, and what they ask for as code.

`source` (with `sizes`) is the model, `run` the arguments, `options` (with `panel`) the options, `number` their fields,
`code` what is shown of all; `form` holds them together. Imports what the app may. Tests: tests/widgets/app/form.
"""

from workbench.widgets.app.form.form import Form

__all__ = ["Form"]
