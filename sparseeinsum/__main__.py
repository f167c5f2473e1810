"""`python -m sparseeinsum` runs the command line."""

import sys

from sparseeinsum.cli import main

if __name__ == "__main__":
    sys.exit(main())
