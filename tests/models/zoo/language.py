"""Transformers in the ways users write them: encoder and decoder, GPT-2, a Llama block with its cache, a vision one."""

from __future__ import annotations
