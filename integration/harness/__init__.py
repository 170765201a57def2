"""What the integration tests, the benchmarks, the soak and the conformance runs share.

It drives installed programs from outside and imports nothing of Diapause.
"""
