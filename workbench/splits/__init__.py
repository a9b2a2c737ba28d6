"""Where to cut a model into pipeline stages: costs of layers as measured, an exact search, and compiles that verify it.

`costs` reads a profile, `search` knows numbers only, `layout` says where cuts may be and which IPU a stage is
on, `split` is the report, `find` the loop of search and compile.
Imports requests and profiles; models only through `engine.frontends.staging`. Tests: tests/splits.
"""
