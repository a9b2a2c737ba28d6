"""What every folder may use and which knows nothing of IPUs: registries, units, files."""
