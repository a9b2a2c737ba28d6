"""See how a model meets the IPU: `import workbench as wb`."""
