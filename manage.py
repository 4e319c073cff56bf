#!/usr/bin/env python
"""Run a management command."""

import sys

from agentsite.packaging.manage import manage

if __name__ == "__main__":
    manage(sys.argv[1:])
