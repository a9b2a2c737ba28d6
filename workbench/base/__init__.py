"""What every folder may use and which knows nothing of IPUs: registries, units, files.

`registry` (name → object, discovery of folders), `files` (whole or not at all), `units`, `dtypes` (the one table of
element types), `arrays`, `spans`, `collection`, `checked`, `whole` and `text` (values, numbers and names that users
give), `arithmetic` (a formula written out with its numbers), `host` (what this machine can hold, interrupts that
wait), `source` (the user's code). Imports nothing but the errors.
Tests: tests/base.
"""
