"""`python -m integration.toolbox` is toolbox.py."""

import sys

from integration.toolbox import toolbox

sys.exit(toolbox.main(sys.argv[1:]))
