# SPDX-License-Identifier: Apache-2.0
"""Sessions with their options, runs and results, and the environment that sessions share."""
