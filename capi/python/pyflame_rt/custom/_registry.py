# SPDX-License-Identifier: Apache-2.0
"""The custom operators of the process."""
from __future__ import annotations

import threading
from typing import Dict, List, Optional

from .._core import library as lib
from .._core.errors import InvalidArgumentError, NotFoundError
from ._calls import register
from ._op import CustomOp
from ._schema import GradientFn, KernelFn, NodeKernelMaker, OpSchema, ShapeInferenceFn, TypeInferenceFn


class CustomOpRegistry:
    """The operators that were built, by name ("MyOp") or full name ("custom::MyOp").

    Where several have the name, it stands for the one with the newest version, and the first built of those.
    """

    _the: Optional["CustomOpRegistry"] = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self._ops: Dict[str, List[CustomOp]] = {}

    @classmethod
    def instance(cls) -> "CustomOpRegistry":
        """The one of the process."""
        with cls._lock:
            if cls._the is None:
                cls._the = cls()
            return cls._the

    def list(self) -> List[str]:
        """Full names, sorted, each once."""
        with self._lock:
            return sorted(self._ops)

    def size(self) -> int:
        """The number of operators; each version and each list of types counts."""
        with self._lock:
            return sum(len(ops) for ops in self._ops.values())

    def has(self, name: str) -> bool:
        """Tells whether an operator of this name, or full name, is registered."""
        return self.get(name) is not None

    def get(self, name: str) -> Optional[CustomOp]:
        """The operator of this name, or full name; None when there is none."""
        with self._lock:
            found = self._find(name)
            return None if found is None else max(self._ops[found], key=lambda op: op.version)

    def register_op(self, schema: OpSchema, kernel: Optional[KernelFn] = None, *,
                    node_kernel: Optional[NodeKernelMaker] = None,
                    shape_inference: Optional[ShapeInferenceFn] = None,
                    type_inference: Optional[TypeInferenceFn] = None,
                    gradient: Optional[GradientFn] = None) -> CustomOp:
        """Registers an operator of a copy of |schema|; the functions as in ``CustomOpBuilder``.

        One without a kernel can be used in models and not run before ``CustomOp.set_kernel`` gave it one. Raises
        InvalidArgumentError when its name is taken or something is wrong with it.
        """
        op = CustomOp(schema.copy())
        faults = op._schema.validate()
        if faults:
            raise InvalidArgumentError(f"custom operator '{schema.name}': " + "; ".join(faults))
        for what, function in (("node kernel", node_kernel), ("shape inference", shape_inference),
                               ("type inference", type_inference), ("gradient", gradient)):
            if function is not None and not callable(function):
                raise InvalidArgumentError(f"custom operator '{schema.name}': its {what} is {function!r}, which cannot "
                                           "be called")
        if kernel is not None:
            op.set_kernel(kernel)
        op._maker, op._shape_inference, op._type_inference, op._gradient = (
            node_kernel, shape_inference, type_inference, gradient)
        with self._lock:
            register(op)
            self._ops.setdefault(op.full_name(), []).append(op)
        return op

    def unregister(self, name: str) -> None:
        """Models loaded and sessions made later do not know it; those that exist keep it.

        All operators of the name go, of any version and types. Raises NotFoundError when there is none.
        """
        with self._lock:
            found = self._find(name)
            if found is None:
                known = ", ".join(f"'{full}'" for full in sorted(self._ops)) or "none"
                raise NotFoundError(f"unregister: no custom operator '{name}'; there are {known}")
            self._remove(found)

    unregister_op = unregister

    def clear(self) -> None:
        """Unregisters all of them."""
        with self._lock:
            for full in [*self._ops]:
                self._remove(full)

    def _remove(self, full: str) -> None:
        op = self._ops[full][0]
        lib.check(lib.env.unregister_operator(lib.default_env().address, lib.text(op.domain), lib.text(op.name)))
        del self._ops[full]

    def _find(self, name: str) -> Optional[str]:
        """The full name of the operators of this name, or full name."""
        if name in self._ops:
            return name
        return next((full for full, ops in sorted(self._ops.items()) if ops[0].name == name), None)

    def __repr__(self) -> str:
        return f"CustomOpRegistry({', '.join(self.list())})"


