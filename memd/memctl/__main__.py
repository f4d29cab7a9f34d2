"""`python -m memd.memctl`: the same as the console script `memctl`."""

import sys

from memd.memctl import main

sys.exit(main())
