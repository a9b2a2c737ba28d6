"""What a notebook shows of an error of ours: the lines of the user on the way to it, and none of ours."""

from __future__ import annotations

import sys
from types import TracebackType

from workbench.base.source.lines import is_library, is_own


def in_a_notebook(error: BaseException, *, whole: bool = False) -> list[str]:
    """The traceback as the running IPython writes it; whole under `%xmode Verbose` too, which asks for everything."""
    writer = sys.modules["IPython"].get_ipython().InteractiveTB
    whole = whole or writer.mode == "Verbose"
    lines = error.__traceback__ if whole else of_the_user(error.__traceback__)
    text: list[str] = writer.structured_traceback(type(error), error, lines, tb_offset=1)
    return text


def of_the_user(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without what is ours and what we call, but for the user's own lines that we call; whole where
    nothing was before ours."""
    links: list[TracebackType] = []
    while traceback is not None:
        links.append(traceback)
        traceback = traceback.tb_next
    entered = next((at for at, link in enumerate(links) if is_own(_file(link))), len(links))
    kept = [*links[:entered], *(link for link in links[entered:] if not is_library(_file(link)))] if entered else links
    found: TracebackType | None = None
    for link in reversed(kept):
        found = TracebackType(found, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return found


def _file(link: TracebackType) -> str:
    return link.tb_frame.f_code.co_filename
