"""A model cut into pipeline stages: forward, backward and update of each, and the program around them."""
