"""One run on a machine with an NVIDIA GPU (or, rehearsed, on the software GPU), without network.

`run.sh BUNDLE OUT [--software]` unpacks the bundle and starts this package: sections with time limits of
their own, each of which may fail without ending the others, and results as files in OUT.
"""
