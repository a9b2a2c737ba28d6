"""Asynchronous callbacks: a thread hands results on as they leave the outfeed, while the execution goes on."""

from __future__ import annotations

import queue
import threading
from typing import Any

import keras

# What Keras calls the batches of each mode.
KINDS = {"training": "train", "evaluation": "test", "prediction": "predict"}
_END = object()


class PolledCallbacks(keras.callbacks.CallbackList):  # type: ignore[misc]
    """Callbacks of batches, called once for each by a thread; Keras' loop, which calls once an execution, waits here.

    What a callback raises stops the thread, and is raised in the loop.
    """

    def __init__(self, callbacks: Any, mode: str, **more: Any) -> None:
        super().__init__(callbacks, **more)
        self._model_now: Any = more["model"]
        self._kind = KINDS[mode]
        self._step = 0
        self._waiting: queue.Queue[Any] = queue.Queue()
        self._failed: BaseException | None = None
        self._thread: threading.Thread | None = None

    def hear(self, results: Any) -> None:
        """Results that left the outfeed. Raises what a callback raised before."""
        self._raise()
        if self._thread is None:
            self._thread = threading.Thread(target=self._poll, name="outfeed poll", daemon=True)
            self._thread.start()
        logs = {"outputs": results} if self._kind == "predict" else results
        self._waiting.put((self._kind, self._step, logs))
        self._step += 1

    def _poll(self) -> None:
        while (item := self._waiting.get()) is not _END:
            try:
                if self._failed is None:
                    kind, step, logs = item
                    getattr(super(), f"on_{kind}_batch_begin")(step)
                    getattr(super(), f"on_{kind}_batch_end")(step, logs)
            except BaseException as error:  # handed to the loop, whatever it is
                self._failed = error
            finally:
                self._waiting.task_done()
        self._waiting.task_done()

    def _raise(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _begins(self, kind: str, batch: int) -> None:
        self._kind, self._step = kind, batch

    def _ends(self) -> None:
        """All that left the outfeed was handed on; the state is that of the loop, whatever a callback looked at."""
        self._waiting.join()
        self._raise()
        self._model_now._jax_state_synced = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """An execution begins."""
        self._begins("train", batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """An execution has ended."""
        self._ends()

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """An execution begins."""
        self._begins("test", batch)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """An execution has ended."""
        self._ends()

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """An execution begins."""
        self._begins("predict", batch)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """An execution has ended."""
        self._ends()

    def close(self) -> None:
        """The thread ends, when what it has is handed on."""
        if self._thread is not None:
            self._waiting.put(_END)
            self._thread.join()
            self._thread = None


__all__ = ["PolledCallbacks"]
