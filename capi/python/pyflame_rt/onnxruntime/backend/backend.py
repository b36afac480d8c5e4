# SPDX-License-Identifier: Apache-2.0
"""Preparing models, and running them at once."""
from __future__ import annotations

from typing import Any, List, Optional

from pyflame_rt._core.errors import InvalidArgumentError
from pyflame_rt.onnxruntime._environment import get_device
from pyflame_rt.onnxruntime._exceptions import translates
from pyflame_rt.onnxruntime._options import SessionOptions
from pyflame_rt.onnxruntime._session import InferenceSession
from pyflame_rt.onnxruntime.backend.backend_rep import OnnxRuntimeBackendRep


@translates
class OnnxRuntimeBackend:
    """ONNX's backend interface: all of it is class methods."""

    @classmethod
    def is_compatible(cls, model: Any, device: Optional[str] = None, **_: Any) -> bool:
        """Tells whether the device is here; whether a model can be run is known once it is prepared."""
        return device is None or cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tells whether there is a device of this name: "CPU"."""
        return device.upper().split(":")[0] in get_device().upper().split("-")

    @classmethod
    def prepare(cls, model: Any, device: Optional[str] = None, **kwargs: Any) -> OnnxRuntimeBackendRep:
        """Makes a model ready to run.

        Parameters
        ----------
        model: a path, bytes, an onnx.ModelProto, a session, or what was prepared.
        device: "CPU", which None is too.
        kwargs: attributes of SessionOptions, and ``providers``.
        """
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if device is not None and not cls.supports_device(device):
            raise InvalidArgumentError(f"there is no device '{device}' here; there is '{get_device()}'")
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        options, providers = SessionOptions(), kwargs.pop("providers", None)
        for name, value in kwargs.items():
            setattr(options, name, value)
        source = model.SerializeToString() if hasattr(model, "SerializeToString") else model
        return OnnxRuntimeBackendRep(InferenceSession(source, options, providers))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: Optional[str] = None, **kwargs: Any) -> List[Any]:
        """Prepares a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: Optional[str] = None, **kwargs: Any) -> List[Any]:
        """Is not here, as it is not there: a node alone is no model."""
        raise NotImplementedError("a node is run as the only one of a model; see run_model")


is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
run_model = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
