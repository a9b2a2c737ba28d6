"""Models in: Keras, JAX and ready models become a `Graph`."""
