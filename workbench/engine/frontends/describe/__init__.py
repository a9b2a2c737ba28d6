"""What a source is, before anything of it is traced: its kind, its layers, its replicas, its checks."""
