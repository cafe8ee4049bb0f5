"""The program: what is above this package holds it, whether compiled or as source."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])
    from trainwright.node.shim.keeper import main

    main(sys.argv[1:])
