"""Profiles as plain data, the tables and reports derived from them, and the files they are kept in."""
