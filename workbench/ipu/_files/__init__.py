"""The files programs for IPUs leave behind: executables, tensors, reports."""
