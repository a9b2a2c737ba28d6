"""What leaves the app and comes back: one HTML file, profile files by drop, a cell of code, results kept in a folder.

Imports the app's history and views. Tests: tests/widgets/app/share.
"""

from workbench.widgets.app.share.kept import FOLDER, Kept
from workbench.widgets.app.share.panel import SharePanel

__all__ = ["FOLDER", "Kept", "SharePanel"]
