"""Other projects' suites, run with plain runc and with diapause-runc in one run, and compared."""
