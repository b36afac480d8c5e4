# SPDX-License-Identifier: Apache-2.0
"""A program as mypy --strict sees it. Argument: the folder of the digits."""
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

import numpy as np
import numpy.typing as npt

import pyflame_rt
import pyflame_rt.onnxruntime as ort
from pyflame_rt import custom, opt


def probabilities(session: pyflame_rt.InferenceSession, image: npt.NDArray[np.float32],
                  run_options: Optional[pyflame_rt.RunOptions] = None) -> npt.NDArray[np.float32]:
    feeds: Dict[str, npt.NDArray[np.float32]] = {session.get_inputs()[0].name: image}
    out: npt.NDArray[np.float32] = session.run(["probabilities"], feeds, run_options)[0]
    return out


class Doubler(pyflame_rt.Backend):
    """A backend for one operator, as its signatures have it."""

    name = "typed doubler"

    def get_supported_ops(self) -> List[str]:
        return ["Relu"]

    def execute(self, graph: pyflame_rt.Graph, input_feed: Dict[str, pyflame_rt.Tensor],
                output_names: Sequence[str] = ()) -> List[pyflame_rt.Tensor]:
        return [pyflame_rt.from_numpy(2 * next(iter(input_feed.values())).numpy()) for _ in output_names]


def square_gradient(inputs: List[pyflame_rt.Tensor], grads: List[pyflame_rt.Tensor]) -> List[pyflame_rt.Tensor]:
    return [pyflame_rt.from_numpy(2 * inputs[0].numpy() * grads[0].numpy())]


class Scaled:
    """A kernel made for a node."""

    def __init__(self, node: custom.OpNode) -> None:
        self.factor: float = node.attributes["factor"]

    def __call__(self, inputs: List[pyflame_rt.Tensor]) -> List[pyflame_rt.Tensor]:
        return [pyflame_rt.from_numpy(self.factor * inputs[0].numpy())]


def environment() -> None:
    pyflame_rt.BackendRegistry.instance().register_backend(Doubler())
    cpu: List[pyflame_rt.ProviderInfo] = [one for one in pyflame_rt.Environment.instance().providers()
                                          if "cpu" in one.devices]
    assert cpu[0].available
    square = (custom.CustomOpBuilder("TypedSquare").input("X").output("Y").gradient(square_gradient)
              .kernel(lambda inputs, attrs: [inputs[0].numpy() ** 2]).build())
    gradient: Optional[pyflame_rt.Tensor] = square.gradient([np.ones(2)], [np.ones(2)])[0]
    dtypes: List[Optional[pyflame_rt.DType]] = square.infer_output_dtypes([pyflame_rt.DType.Int8])
    assert gradient is not None and gradient.numpy().tolist() == [2, 2] and dtypes == [pyflame_rt.DType.Int8]
    square.schema.name = "changes a copy"
    scaled = (custom.CustomOpBuilder("TypedScaled").version(1, until=3).input("X").output("Y")
              .attr_float("factor", required=True).node_kernel(Scaled).build())
    until: int = scaled.until
    assert scaled([np.ones(2)], {"factor": 3.0})[0].numpy().tolist() == [3, 3] and until == 3
    custom.CustomOpRegistry.instance().clear()


def main(folder: Path) -> None:
    environment()
    options = pyflame_rt.SessionOptions(num_threads=2, precision="ieee")
    options.num_threads = 1
    options.optimization_level = pyflame_rt.OptLevel.ALL
    faults: List[str] = options.validate()
    assert faults == []
    with pyflame_rt.InferenceSession(folder / "digits.onnx", options, providers=["CPUExecutionProvider"]) as session:
        shape: Optional[List[Optional[int]]] = session.get_inputs()[0].shape
        assert shape == [None, 1, 8, 8]
        run_options = pyflame_rt.RunOptions()
        run_options.timeout_ms = 10000
        image = pyflame_rt.Tensor([1, 1, 8, 8], pyflame_rt.DType.Float32)
        pixels: npt.NDArray[np.float32] = image.numpy()
        found = probabilities(session, pixels, run_options)
        assert found.shape == (1, 10) and abs(float(found.sum()) - 1) < 1e-5
        try:
            session.run(None, {"picture": pixels})
        except pyflame_rt.InputError as fault:
            code: int = fault.code
            causes: List[pyflame_rt.PyFlameRTError] = fault.faults
            assert code > 0 and causes == []
    print("typed", pyflame_rt.__version__)


if TYPE_CHECKING:
    # Mypy must refuse these: an ignore that has nothing to ignore is an error.
    wrong = pyflame_rt.InferenceSession(7)  # type: ignore[arg-type]
    wrong.run()  # type: ignore[call-arg]
    wrong.run(["y"], [1.0])  # type: ignore[arg-type]
    wrong.run_all()  # type: ignore[attr-defined]
    pyflame_rt.SessionOptions().num_threads = "four"  # type: ignore[assignment]
    name: int = wrong.get_outputs()[0].name  # type: ignore[assignment]
    # Misspelt keywords.
    pyflame_rt.SessionOptions(num_thread=2)  # type: ignore[call-arg]
    pyflame_rt.RunOptions(timeout=2)  # type: ignore[call-arg]
    pyflame_rt.ImportOptions(validat=True)  # type: ignore[call-arg]
    pyflame_rt.InferenceSession("m", provider=["CPUExecutionProvider"])  # type: ignore[call-arg]
    pyflame_rt.InferenceSession("m", providers=[7])  # type: ignore[list-item]
    wrong.run(None, {}, run_option=None)  # type: ignore[call-arg]
    graph = pyflame_rt.Graph()
    graph.add_input("x", [1], type=pyflame_rt.DType.Float32)  # type: ignore[call-arg]
    graph.add_node("n", "Relu", input=["x"])  # type: ignore[call-arg]
    opt.FusionConfig(enable_everything=True)  # type: ignore[call-arg]
    opt.optimize(graph, levels=pyflame_rt.OptLevel.ALL)  # type: ignore[call-arg]
    # Misspelt names.
    pyflame_rt.SessionOptions().num_thread = 2  # type: ignore[attr-defined]
    pyflame_rt.RunOptions().timeout = 2  # type: ignore[attr-defined]
    pyflame_rt.ImportOptions().validat = True  # type: ignore[attr-defined]
    opt.FusionConfig().enable_everything = True  # type: ignore[attr-defined]
    ort.SessionOptions().intra_op_threads = 2  # type: ignore[attr-defined]
    ort.SessionOptions().add_config("a", "b")  # type: ignore[attr-defined]
    ort.RunOptions().log_level = 2  # type: ignore[attr-defined]
    ort.get_available_provider()  # type: ignore[attr-defined]
    pyflame_rt.get_available_provider()  # type: ignore[attr-defined]
    pyflame_rt.DType.Float33  # type: ignore[attr-defined]
    graph.nodes[0].operator  # type: ignore[attr-defined]
    wrong.io_binding().bind("x")  # type: ignore[attr-defined]
    custom.CustomOpBuilder("op").kernels(print)  # type: ignore[attr-defined]
    custom.CustomOpBuilder("op").gradients(print)  # type: ignore[attr-defined]
    pyflame_rt.Environment.instance(threads=2)  # type: ignore[call-arg]
    pyflame_rt.Environment.instance().set_logger(print, "debug")  # type: ignore[call-arg]
    pyflame_rt.Service("name", {"key": 1}).adress  # type: ignore[attr-defined]
    pyflame_rt.Backend()  # type: ignore[abstract]
    # Misspelt words.
    pyflame_rt.SessionOptions(execution_mode="paralel")  # type: ignore[arg-type]
    pyflame_rt.SessionOptions().log_level = "warn"  # type: ignore[assignment]
    pyflame_rt.SessionOptions().precision = "bfloat16"  # type: ignore[assignment]
    pyflame_rt.RunOptions(log_level="verbose")  # type: ignore[arg-type]
    pyflame_rt.load_model("m", confine="link")  # type: ignore[arg-type]

if __name__ == "__main__":
    main(Path(sys.argv[1]))
