"""Everything drawn: the views of reports, several of them linked, a whole profile, and the interactive workbench.

`kit` is what views are made of, `views` has one a file, `app` is the interactive workbench, `linked` several views on
one selection. Imports profiles and reports; the app the executable too. Tests: tests/widgets, and tests/browser in
the real JupyterLab.
"""
