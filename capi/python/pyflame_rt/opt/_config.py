# SPDX-License-Identifier: Apache-2.0
"""Options that say what each pass may do."""
from __future__ import annotations

import enum
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Dict, List, Optional

from .._core import abi
from .._core.errors import InvalidArgumentError
from .._core.options import NativeOptions, OptLevel
from .._core.progress import Progress


class Layout(enum.IntEnum):
    """Layouts of images: the order of batch, channels, height and width."""

    NCHW = 0
    NHWC = 1
    NC4HW4 = 2


class _Config:
    """Options under a prefix of the library's optimizer options. A name that there is not is refused."""

    _PREFIX: ClassVar[str] = ""

    if not TYPE_CHECKING:  # it would let type checkers take any name

        def __setattr__(self, name: str, value: Any) -> None:
            known = [f.name for f in fields(self)]
            if name not in known:
                raise AttributeError(f"{type(self).__name__} has no option '{name}'; it has {', '.join(known)}")
            super().__setattr__(name, value)

    def _set(self, native: NativeOptions) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            native.set(self._PREFIX + f.name, Layout(value).name.lower() if f.name == "conv_layout" else value)


@dataclass
class ConstantFoldingConfig(_Config):
    """Options that say what ``fold_constants`` computes beforehand.

    Attributes
    ----------
    max_tensor_bytes: larger results are not computed, but for weights that products read transposed.
    fold_shape_ops: Shape, Gather of a shape and the like, where shapes are known.
    fold_expensive_ops: products and convolutions too.
    exclude_ops: operators never folded.
    """

    _PREFIX: ClassVar[str] = "constant_folding."
    max_tensor_bytes: int = 16 * 1024 * 1024
    fold_shape_ops: bool = True
    fold_expensive_ops: bool = False
    exclude_ops: List[str] = field(default_factory=list)


@dataclass
class DCEConfig(_Config):
    """Options that say what ``eliminate_dead_code`` removes besides nodes whose results nobody uses.

    Attributes
    ----------
    remove_initializers: constants that nobody uses.
    remove_identity: Identity nodes.
    remove_dropout: Dropout, which does nothing in inference.
    """

    _PREFIX: ClassVar[str] = "dce."
    remove_initializers: bool = True
    remove_identity: bool = True
    remove_dropout: bool = True


@dataclass
class CSEConfig(_Config):
    """Options that say which nodes ``eliminate_common_subexpressions`` takes for alike.

    Attributes
    ----------
    check_attributes: compare attributes too; False: nodes that have some are left alone.
    max_comparisons: of one node with others.
    """

    _PREFIX: ClassVar[str] = "cse."
    check_attributes: bool = True
    max_comparisons: int = 1000


@dataclass
class FusionConfig(_Config):
    """Options that say which patterns ``fuse_operators`` makes one operator of.

    Attributes
    ----------
    fuse_conv_bn: products, convolutions among them, and BatchNormalization.
    fuse_conv_bn_activation: the same with an activation behind.
    fuse_matmul_add: MatMul and Add, to Gemm.
    fuse_elementwise_activation: Add or Mul and an activation.
    check_backend_support: only what the target backend says it runs as one.
    target_backend: a device word ("cpu") or a provider's name.
    """

    _PREFIX: ClassVar[str] = "fusion."
    fuse_conv_bn: bool = True
    fuse_conv_bn_activation: bool = True
    fuse_matmul_add: bool = True
    fuse_elementwise_activation: bool = True
    check_backend_support: bool = True
    target_backend: str = "cpu"


@dataclass
class LayoutConfig(_Config):
    """Options that say how ``optimize_layout`` lays images out.

    Attributes
    ----------
    conv_layout: the layout that convolutions prefer.
    insert_transposes: put Transpose nodes where a layout has to change.
    propagate_layout: move them through the graph to where they cancel.
    target_backend: a device word ("cpu") or a provider's name.
    """

    _PREFIX: ClassVar[str] = "layout."
    conv_layout: Layout = Layout.NCHW
    insert_transposes: bool = True
    propagate_layout: bool = True
    target_backend: str = "cpu"


@dataclass
class DataflowConfig(_Config):
    """Options that say which provider ``DataflowPass`` asks what takes less time.

    Attributes
    ----------
    target_backend: its name, or short, as "cpu"; "" = the first of the optimizer's.
    device: which of its devices, by its word; "" = the first.
    """

    _PREFIX: ClassVar[str] = "dataflow."
    target_backend: str = ""
    device: str = ""


@dataclass
class PassManagerConfig(_Config):
    """Options that say how a PassManager runs its passes.

    Attributes
    ----------
    opt_level: passes and rewrites above it are left out.
    max_iterations: rounds of run_until_fixed_point at most.
    verbose: log what each pass did.
    validate_after_pass: check the graph after each pass.
    verify: compare results before and after each pass, and undo what changes them.
    skip_passes: passes to leave out, by name.
    extra: further options of the library's optimizer by their key, as text.
    progress: ``progress(fraction, stage)`` hears how far each run is, from 0 to 1; returning False stops it with
        CancelledError, raising with what was raised, and the graph stays as it was.
    """

    opt_level: OptLevel = OptLevel.EXTENDED
    max_iterations: int = 10
    verbose: bool = False
    validate_after_pass: bool = False
    verify: bool = False
    skip_passes: List[str] = field(default_factory=list)
    extra: Dict[str, str] = field(default_factory=dict)
    progress: Optional[Progress] = None

    def _set(self, native: NativeOptions) -> None:
        native.set("level", level_of(self.opt_level))
        native.set("verify", "on" if self.verify else "off")
        for key in ("max_iterations", "verbose", "validate_after_pass", "skip_passes"):
            native.set(key, getattr(self, key))
        for key, value in self.extra.items():
            native.set(key, value)


def level_of(level: Any) -> OptLevel:
    try:
        return OptLevel(level)
    except ValueError:
        raise InvalidArgumentError(f"{level!r} is no optimisation level; take one of OptLevel's: " + ", ".join(
            each.name for each in OptLevel)) from None


def optimizer_options(*configs: Any) -> NativeOptions:
    """The library's optimizer options as the configs say."""
    native = NativeOptions(abi.OPTIONS_OPTIMIZER)
    for config in configs:
        config._set(native)
    return native
