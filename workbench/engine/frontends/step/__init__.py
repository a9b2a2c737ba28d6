"""A Keras model as functions without state: built, with its loss, its optimizer and its training step."""
