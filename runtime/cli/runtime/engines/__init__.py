"""The container engines: what each has to be told, and what of it is in effect."""
