"""Everything drawn: registers a face under each report's name, and loads it when it is first looked at."""

from __future__ import annotations

from workbench.base.registry import faces
from workbench.widgets.face import VIEWS, Face, Page
from workbench.widgets.views.schedules import StillFace

for _name, _title in VIEWS.items():
    if _name not in faces:
        faces.add(_name, Face(name=_name, title=_title))
if "diagnosis" not in faces:
    faces.add("diagnosis", Face(name="diagnosis", title="Diagnosis"))
if "schedules" not in faces:
    faces.add("schedules", StillFace(name="schedules", title="Schedules"))
if "html" not in faces:
    faces.add("html", Page())
