# SPDX-License-Identifier: Apache-2.0
"""All generators: (domain, operator) -> a function that draws a case."""
import ops_contrib
import ops_elementwise
import ops_ml
import ops_move
import ops_quantized
import ops_reduce
import ops_window

GENERATORS = {}
for family in (ops_elementwise, ops_move, ops_reduce, ops_window, ops_ml, ops_contrib, ops_quantized):
    GENERATORS.update(family.GENERATORS)
