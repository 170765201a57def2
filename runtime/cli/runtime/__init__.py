"""`diapause runtime`: how the container engines of this node get to know `diapause-runc`."""
