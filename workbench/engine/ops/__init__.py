"""Operator families, one per file, found by folder discovery."""
