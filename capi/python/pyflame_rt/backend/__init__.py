# SPDX-License-Identifier: Apache-2.0
"""Execution of graphs by Python code of the program's own: ``Backend``, and the registry that sessions find one in."""
from ._backend import Backend
from ._registry import BackendRegistry

__all__ = ["Backend", "BackendRegistry"]
