"""Samples of the operators of `ops/random.py`."""

from __future__ import annotations

from tests.engine.ops.sampled import U32, Sample, sample

SAMPLES: dict[str, Sample] = {
    "random_keys": sample("random_wrap", [((2,), U32)], [((), "key")]),
    "random_hash": sample("random_split", [((), "key")], [((3,), "key")], shape=(3,)),
    "random_bits": sample("random_bits", [((), "key")], [((30,), U32)], bit_width=32, shape=(30,)),
}
