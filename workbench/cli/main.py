"""`main`: one command from its words to its exit code."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.cli.commands import outcome_of
from workbench.cli.judged import judged, stopped_by_signals
from workbench.cli.outcome import INTERRUPTED
from workbench.cli.parser import parser
from workbench.cli.terminal import prepare, told, unheard


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 fits, 1 does not, 2 misuse or an error of the model's own code, 3 a defect of the workbench or a process that was
    killed, 130 after Ctrl-C.
    """
    prepare()
    try:
        options = parser().parse_args(arguments)
        with stopped_by_signals():
            return told(judged(options, arguments) if options.compiles_a_model else outcome_of(options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError as error:  # what `lab` prints on its way
        return unheard(error)
