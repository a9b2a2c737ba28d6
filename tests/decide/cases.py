"""Thirty programs that do not fit, drawn by seeds: ten small models, each too large in three ways.

Half of the cases are drawn from a seed that was chosen when the search was finished: the digits of the name of the last
commit that changed it. None of those cases was looked at before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

SEED, LATER_SEED = 2026, 0xA58F77A
WAYS = ("activations", "state", "inference")
# How much too large: what keeps every operation frees little, and less fits nothing of the lattice.
LEAST = {"any": 0.55, "reassociated": 0.65, "exact": 0.93}
LESS = 0.95  # of a share, where the program fits it
LEVELS = ("any", "any", "any", "reassociated", "reassociated", "exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model by name and width, what it is compiled with, and the share of its own bytes that a tile has.

    `later`: drawn from the seed that was chosen when the search was finished.
    """

    model: str
    way: str
    width: int
    batch: int
    tiles: int
    share: float
    keep_numbers: str
    later: bool

    @property
    def name(self) -> str:
        return f"{self.model}, {self.way}"

    @property
    def without(self) -> tuple[str, ...]:
        """Axes of the lattice that are left out."""
        return ()

    def arguments(self) -> dict[str, Any]:
        """What it is compiled with, on tiles of usual size."""
        import workbench as wb

        optimizer = {"activations": {"optimizer": "sgd"}, "state": {"optimizer": "adam"}, "inference": {}}[self.way]
        return {
            "batch_size": self.batch,
            "mode": "inference" if self.way == "inference" else "training",
            "target": wb.target("ipu2", tiles_per_ipu=self.tiles),
            **optimizer,
        }

    def source(self) -> Any:
        """The Keras model."""
        return MODELS[self.model](self.width)

    def compiled(self) -> Any:
        """The program on tiles that have but a share of what it takes; less where plans make do with that."""
        import workbench as wb

        arguments = self.arguments()
        takes = wb.compile(self.source, **arguments).profile.max_tile_bytes
        share, found = self.share, None
        while found is None or found.profile.fits:
            target = arguments["target"].replace(bytes_per_tile=int(takes * share) // 64 * 64)
            found = wb.compile(self.source, **{**arguments, "target": target})
            share *= LESS
        return found


def mlp(width: int) -> Any:
    import keras

    layers = [keras.layers.Dense(width * 8, "relu") for _ in range(3)]
    return keras.Sequential([keras.Input((width * 4,)), *layers, keras.layers.Dense(10, "softmax")])


def narrowing(width: int) -> Any:
    import keras

    layers = [keras.layers.Dense(max(8, width * 16 >> place), "gelu") for place in range(6)]
    return keras.Sequential([keras.Input((64,)), *layers, keras.layers.Dense(10, "softmax")])


def cnn(width: int) -> Any:
    import keras

    layers = [keras.layers.Conv2D(width, 3, padding="same", activation="relu") for _ in range(3)]
    return keras.Sequential(
        [keras.Input((16, 16, 4)), *layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10, "softmax")]
    )


def normalised(width: int) -> Any:
    import keras

    layers = []
    for _ in range(3):
        layers += [keras.layers.Conv2D(width, 3, padding="same"), keras.layers.BatchNormalization()]
        layers += [keras.layers.Activation("relu")]
    return keras.Sequential(
        [keras.Input((16, 16, 4)), *layers, keras.layers.Flatten(), keras.layers.Dense(10, "softmax")]
    )


def residual(width: int) -> Any:
    import keras

    images = keras.Input((16, 16, 4))
    values = keras.layers.Conv2D(width, 3, padding="same")(images)
    for _ in range(2):
        inner = keras.layers.Conv2D(width, 3, padding="same", activation="relu")(values)
        values = keras.layers.Add()([values, keras.layers.Conv2D(width, 3, padding="same")(inner)])
    values = keras.layers.GlobalAveragePooling2D()(values)
    return keras.Model(images, keras.layers.Dense(10, "softmax")(values))


def depthwise(width: int) -> Any:
    import keras

    layers = []
    for _ in range(2):
        layers += [
            keras.layers.Conv2D(width * 2, 1, activation="relu"),
            keras.layers.DepthwiseConv2D(3, padding="same"),
        ]
        layers += [keras.layers.Conv2D(width, 1)]
    return keras.Sequential(
        [keras.Input((16, 16, 8)), *layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10, "softmax")]
    )


def lstm(width: int) -> Any:
    import keras

    layers = [keras.layers.LSTM(width * 2, return_sequences=True), keras.layers.LSTM(width * 2)]
    return keras.Sequential([keras.Input((12, 16)), *layers, keras.layers.Dense(10, "softmax")])


def encoder(width: int) -> Any:
    import keras

    steps = keras.Input((16, width * 2))
    values = steps
    for _ in range(2):
        mixed = keras.layers.MultiHeadAttention(2, width)(values, values)
        values = keras.layers.LayerNormalization()(values + mixed)
        inner = keras.layers.Dense(width * 8, "gelu")(values)
        values = keras.layers.LayerNormalization()(values + keras.layers.Dense(width * 2)(inner))
    values = keras.layers.GlobalAveragePooling1D()(values)
    return keras.Model(steps, keras.layers.Dense(10, "softmax")(values))


def words(width: int) -> Any:
    import keras

    layers = [keras.layers.Embedding(512, width * 4), keras.layers.Dense(width * 8, "relu")]
    return keras.Sequential([keras.Input((24,), dtype="int32"), *layers, keras.layers.Dense(256, "softmax")])


def along_time(width: int) -> Any:
    import keras

    layers = [keras.layers.Conv1D(width, 5, padding="same", activation="relu") for _ in range(3)]
    return keras.Sequential(
        [keras.Input((64, 8)), *layers, keras.layers.Dropout(0.1), keras.layers.Flatten(), keras.layers.Dense(10)]
    )


MODELS: dict[str, Callable[[int], Any]] = {
    each.__name__: each
    for each in (mlp, narrowing, cnn, normalised, residual, depthwise, lstm, encoder, words, along_time)
}
READS_BATCH = ("normalised", "along_time")  # statistics of the batch; a draw over it


def drawn() -> tuple[Case, ...]:
    """Every model in every way, the first, third, fifth ... from the first seed."""
    randoms = (Random(SEED), Random(LATER_SEED))
    pairs = [(model, way) for model in MODELS for way in WAYS]
    return tuple(
        _drawn(randoms[place % 2], model, way, later=bool(place % 2)) for place, (model, way) in enumerate(pairs)
    )


def _drawn(random: Random, model: str, way: str, *, later: bool) -> Case:
    level = random.choice(LEVELS[:-1] if way == "inference" else LEVELS)
    whole = level == "reassociated" and way != "inference" and model in READS_BATCH  # whose batch must stay whole
    least = LEAST["exact" if whole else level]
    return Case(
        model=model,
        way=way,
        width=random.choice((24, 32, 40, 48) if way == "state" else (12, 16, 20, 24)),
        batch=random.choice((2, 4) if way == "state" else (16, 24, 32)),
        tiles=random.choice((8, 12, 16)),
        share=round(random.uniform(least, 0.99 if least > 0.9 else 0.95), 3),
        keep_numbers=level,
        later=later,
    )
