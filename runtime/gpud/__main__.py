"""python -I -m diapause.runtime.gpud"""

import sys

from diapause.runtime.gpud.main import main

sys.exit(main())
