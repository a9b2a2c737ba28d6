"""Everything drawn: the views of reports, several of them linked, a whole profile, and the interactive workbench."""
