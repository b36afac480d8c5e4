# SPDX-License-Identifier: Apache-2.0
"""A model that is prepared to run."""
from __future__ import annotations

from typing import Any, List

from pyflame_rt._core.errors import InputError
from pyflame_rt.onnxruntime._options import RUN_DEFAULTS, RunOptions
from pyflame_rt.onnxruntime._session import InferenceSession


class OnnxRuntimeBackendRep:
    """A session that takes its inputs in the model's order."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> List[Any]:
        """Runs the model once.

        Parameters
        ----------
        inputs: a list with a value for each input, a dict by name, or the value of the only input.
        kwargs: attributes of RunOptions.
        """
        options = RunOptions()
        for name, value in kwargs.items():
            if name in RUN_DEFAULTS:
                setattr(options, name, value)
        names = [port.name for port in self._session.get_inputs()]
        if isinstance(inputs, dict):
            feeds = inputs
        elif isinstance(inputs, (list, tuple)):
            if len(inputs) != len(names):
                raise InputError(f"{len(inputs)} values are given for {len(names)} inputs: {', '.join(names)}")
            feeds = dict(zip(names, inputs))
        elif len(names) == 1:
            feeds = {names[0]: inputs}
        else:
            raise InputError(f"the model has {len(names)} inputs ({', '.join(names)}); give a list with a value for each")
        return self._session.run(None, feeds, options)
