# SPDX-License-Identifier: Apache-2.0
"""Optimisation of graphs: what sessions do by their ``optimization_level``, to be configured, watched and extended.

>>> result = opt.optimize(graph, OptLevel.ALL)
>>> print(result.stats)

Single passes are functions (``fold_constants``, ``fuse_operators``, ...); a ``PassManager`` runs several, built-in ones
and those derived from ``Pass``; ``register_pass`` adds one to sessions; ``Pattern`` and ``PatternMatcher`` find nodes.
"""
from ._config import (ConstantFoldingConfig, CSEConfig, DataflowConfig, DCEConfig, FusionConfig, Layout, LayoutConfig,
                      PassManagerConfig)
from ._manager import (ConstantFoldingPass, CSEPass, DataflowPass, DeadCodeEliminationPass, LayoutOptimizationPass,
                       OperatorFusionPass, PassManager, RuleInfo, eliminate_common_subexpressions, eliminate_dead_code,
                       fold_constants, fuse_operators, known_rules, optimize, optimize_layout, register_pass)
from ._pass import Pass, PassReport, PassResult, PassStats
from ._pattern import Match, Pattern, PatternEdge, PatternMatcher, PatternNode


__all__ = [
    "CSEConfig", "CSEPass", "ConstantFoldingConfig", "ConstantFoldingPass", "DCEConfig", "DataflowConfig",
    "DataflowPass", "DeadCodeEliminationPass", "FusionConfig", "Layout", "LayoutConfig", "LayoutOptimizationPass",
    "Match", "OperatorFusionPass", "Pass", "PassManager", "PassManagerConfig", "PassReport", "PassResult", "PassStats",
    "Pattern", "PatternEdge", "PatternMatcher", "PatternNode", "RuleInfo", "eliminate_common_subexpressions",
    "eliminate_dead_code", "fold_constants", "fuse_operators", "known_rules", "optimize", "optimize_layout",
    "register_pass",
]
