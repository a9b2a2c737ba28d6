"""axe-core over what is ours on a page: what it finds above minor, as lines a reader can act on."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# What stands on a page of the notebook because of us.
ROOTS = (".wb-app", "section.wb")
MINOR = ("minor", None)
# The rules whose answer a theme can change.
COLOURS = ("color-contrast", "link-in-text-block")


def found_by_axe(page: Page, *roots: str, only: tuple[str, ...] = ()) -> list[str]:
    """What axe finds above minor inside the shown roots, the whole page without any: rule, impact, element, reason.

    With `only`, by these rules alone.
    """
    shown = [root for root in roots if page.locator(root).locator("visible=true").count()]
    assert bool(shown) == bool(roots), f"nothing of {roots} is shown"
    context: dict[str, Any] | None = {"include": [[root] for root in shown]} if shown else None
    options: dict[str, Any] = {"resultTypes": ["violations", "passes"]}
    if only:
        options["runOnly"] = {"type": "rule", "values": list(only)}
    answer = Axe().run(page, context=context, options=options).response
    assert answer["passes"], "axe looked at nothing"
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} | {node['failureSummary'].splitlines()[-1].strip()}"
        for each in answer["violations"]
        if each["impact"] not in MINOR
        for node in each["nodes"]
    ]
