"""What `pipelining_ops.pipeline` records, as a staged program."""
