# SPDX-License-Identifier: Apache-2.0
"""The library, and what every call of it needs: errors, callbacks, options, signals."""
from . import ending as ending, log_lines as log_lines
