"""The ways in which a file of an engine is changed: one small module each."""
