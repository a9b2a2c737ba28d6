"""Published architectures at published sizes, written from their papers as a new user of Keras or JAX writes them."""
