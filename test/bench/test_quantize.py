# SPDX-License-Identifier: Apache-2.0
"""quantize.py's models: their integers, their nodes and what they compute."""
import numpy as np
import onnx
import pyflame_rt
import pytest
from onnx import TensorProto, helper, numpy_helper

import quantize
from network import Network, make_model, serialize
from transformers import Transformer


def run(model, names, feed):
    options = pyflame_rt.SessionOptions()
    options.num_threads = 1
    return pyflame_rt.InferenceSession(model.SerializeToString(), options).run(names, feed)


def small_net(build, channels=3, side=8, outputs=None):
    net = Network("small", seed=1)
    net.channels["data"] = channels
    y = build(net)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in
             (("data", [1, channels, side, side]), (y, outputs or ["n", "c", "h", "w"]))]
    return make_model(helper.make_graph(net.nodes, "small", ports[:1], ports[1:], net.initializers))


def feeds(count=3, channels=3, side=8):
    return [{"data": np.random.default_rng(i).standard_normal((1, channels, side, side), dtype=np.float32)}
            for i in range(count)]


def quantized(model, **options):
    prepared = quantize.prepared(model)
    made = quantize.static(prepared, quantize.ranges_of(prepared, run, feeds()), **options)
    onnx.checker.check_model(made, full_check=True)
    return made


def constants(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def operators(model):
    return [n.op_type for n in model.graph.node]


def producer(model, name):
    return next(n for n in model.graph.node if name in n.output)


def test_a_range_holds_zero_and_its_scale_has_few_bits():
    assert quantize.activation_parameters(0.5, 2.55) == (quantize.few_bits(2.55 / 255), 0)
    scale, zero_point = quantize.activation_parameters(-1, 1)
    assert zero_point in (127, 128)
    assert zero_point.dtype == np.uint8 and scale.dtype == np.float32
    assert quantize.activation_parameters(-1, 1, np.int8)[1] == int(zero_point) - 128
    assert quantize.activation_parameters(0, 0) == (1, 0)
    assert quantize.activation_parameters(-2, -1)[1] >= 254
    for value in (1e-6, 0.3, 1.0, 77.7):
        rounded = quantize.few_bits(value)
        assert value <= rounded <= value * (1 + 2**-8)
        assert quantize.few_bits(value * (1 + 1e-7)) == rounded or rounded == value


def test_weights_are_symmetric_a_channel_or_a_tensor():
    weight = np.array([[1.0, -2.0], [0.5, 0.25], [0, 0]], np.float32)
    integers, scale = quantize.quantized_weight(weight, axis=0)
    assert integers.dtype == np.int8 and integers.tolist() == [[64, -127], [127, 64], [0, 0]]
    np.testing.assert_allclose(scale, [2 / 127, 0.5 / 127, 1], rtol=1e-6)
    integers, scale = quantize.quantized_weight(weight, dtype=np.uint8)
    assert scale.shape == () and integers.tolist() == [[192, 1], [160, 144], [128, 128]]


def test_a_normalisation_is_folded_and_the_model_given_is_left_alone():
    model = small_net(lambda net: net.relu(net.batch_norm(net.conv("data", 4, 3, pad=1, bias=False))))
    before = serialize(model)
    prepared = quantize.prepared(model)
    assert operators(prepared) == ["Conv", "Relu"] and serialize(model) == before
    feed, name = feeds(1)[0], [model.graph.output[0].name]
    np.testing.assert_allclose(run(prepared, name, feed)[0], run(model, name, feed)[0], rtol=1e-4, atol=1e-5)
    shared = small_net(lambda net: net.sum(net.batch_norm(x := net.conv("data", 4, 1)), x))
    assert "BatchNormalization" in operators(quantize.prepared(shared))
    assert operators(quantize.prepared(shared))[-1] == "Add"


def test_ranges_are_of_all_activations_over_all_inputs():
    model = small_net(lambda net: net.relu(net.conv("data", 4, 3)))
    found = quantize.ranges_of(model, run, feeds())
    assert set(found) == {"data", *(n.output[0] for n in model.graph.node)}
    data = np.concatenate([f["data"] for f in feeds()])
    assert found["data"] == (data.min(), data.max())
    assert found[model.graph.output[0].name][0] == 0


def test_the_activation_after_a_convolution_is_its_zero_point():
    made = quantized(small_net(lambda net: net.relu6(net.conv("data", 4, 3))))
    assert operators(made) == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv",
                               "QuantizeLinear", "DequantizeLinear"]
    last = made.graph.node[-2]
    assert constants(made)[last.input[2]] == 0
    (y,) = run(made, None, feeds(9)[-1])
    assert y.min() == 0 and y.max() <= 6.1


def test_a_value_with_two_readers_keeps_its_activation():
    made = quantized(small_net(lambda net: net.node("Add", [c := net.conv("data", 4, 1), net.relu(c)], 4)))
    assert "Relu" in operators(made)


def test_integers_are_those_of_the_formula():
    made = quantized(small_net(lambda net: net.conv("data", 4, 1), outputs=[1, 4, 8, 8]))
    known, conv = constants(made), next(n for n in made.graph.node if n.op_type == "Conv")
    weight, bias = (producer(made, name) for name in conv.input[1:])
    (qx, dx) = (n for n in made.graph.node if n.input[0] in ("data", "data.quantized"))
    assert dx.input[1:] == qx.input[1:]
    x_scale, x_zero = (known[name] for name in qx.input[1:])
    w, w_scale, _ = (known[name] for name in weight.input)
    b, b_scale, _ = (known[name] for name in bias.input)
    assert w.dtype == np.int8 and b.dtype == np.int32 and weight.attribute[0].i == 0
    np.testing.assert_array_equal(b_scale, x_scale * w_scale)
    last = next(n for n in made.graph.node if n.op_type == "QuantizeLinear" and n.input[0] != "data")
    y_scale, y_zero = (known[name] for name in last.input[1:])

    data = feeds(1)[0]["data"]
    x = np.clip(np.rint(data[0] / x_scale) + x_zero, 0, 255)
    sums = np.tensordot(w[:, :, 0, 0].astype(np.int64), x - int(x_zero), 1) + b[:, None, None]
    expected = np.clip(np.rint(sums * (x_scale * w_scale / y_scale).astype(np.float64)[:, None, None]) + y_zero, 0, 255)
    (found,) = run(made, None, {"data": data})
    assert np.abs(found[0] / y_scale + int(y_zero) - expected).max() < 1.01
    plain = run(small_net(lambda net: net.conv("data", 4, 1)), None, {"data": data})[0]
    assert np.abs(found - plain).max() < 0.1 * np.abs(plain).max()


def test_pools_move_parameters_and_sums_and_joins_have_their_own():
    def build(net):
        a, b = net.max_pool(net.conv_relu("data", 4, 1), 2, 2), net.max_pool(net.conv("data", 4, 1), 2, 2)
        return net.global_average_pool(net.node("Add", [net.concat(a, b), net.conv(net.concat(b, a), 8, 1)], 8))

    made = quantized(small_net(build))
    by_output = {n.input[0]: tuple(n.input[1:]) for n in made.graph.node if n.op_type == "QuantizeLinear"}
    for pool in (n for n in made.graph.node if n.op_type == "MaxPool"):
        before = producer(made, pool.input[0])
        assert before.op_type == "DequantizeLinear" and by_output[pool.output[0]] == tuple(before.input[1:])
    pairs = [by_output[producer(made, f"{n.output[0]}").output[0]] for n in made.graph.node
             if n.op_type in ("Concat", "Add")]
    assert len(set(pairs)) == 3
    assert all(producer(made, name).op_type == "DequantizeLinear" for n in made.graph.node
               if n.op_type in ("Add", "Concat", "GlobalAveragePool", "Conv") for name in n.input)


def test_matrices_have_a_scale_a_column_whichever_way_they_lie():
    weight = np.random.default_rng(3).standard_normal((4, 6), dtype=np.float32)
    for op, attributes, array, axis in (("MatMul", {}, weight, 1), ("Gemm", {}, weight, 1), ("Gemm", {"transB": 1}, weight.T, 0)):
        graph = helper.make_graph([helper.make_node(op, ["x", "w"], ["y"], **attributes)], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 6])],
                                  [numpy_helper.from_array(np.ascontiguousarray(array), "w")])
        made = quantize.static(make_model(graph), {"x": (-3, 3), "y": (-9, 9)})
        onnx.checker.check_model(made, full_check=True)
        node = producer(made, next(n for n in made.graph.node if n.op_type == op).input[1])
        assert constants(made)[node.input[1]].shape == (6,) and node.attribute[0].i == axis
        x = np.random.default_rng(4).standard_normal((2, 4), dtype=np.float32)
        assert np.abs(run(made, None, {"x": x})[0] - x @ weight).max() < 0.2


def test_activations_may_be_signed():
    made = quantized(small_net(lambda net: net.relu(net.conv("data", 4, 3))), activation=np.int8)
    for node in made.graph.node:
        if node.op_type == "QuantizeLinear":
            assert constants(made)[node.input[2]].dtype == np.int8
    plain = run(small_net(lambda net: net.relu(net.conv("data", 4, 3))), None, feeds(1)[0])[0]
    assert np.abs(run(made, None, feeds(1)[0])[0] - plain).max() < 0.1 * plain.max()


def small_encoder():
    net = Transformer("encoder", seed=5, width=16, heads=2, inner=32)
    x = net.layer_norm(net.embed(20, 6))
    x = net.layer_norm(net.node("Add", [x, net.attention(x)]))
    net.layer_norm(net.node("Add", [x, net.feed_forward(x)]))
    return net.model("hidden", 6, 16)


def ids(seed):
    return {"ids": np.random.default_rng(seed).integers(0, 20, (1, 6))}


def test_products_and_sums_of_a_transformer_are_in_integers_and_its_normalisations_are_not():
    model = small_encoder()
    made = quantize.static(model, quantize.ranges_of(model, run, [ids(i) for i in range(4)]))
    onnx.checker.check_model(made, full_check=True)
    readers = {"DequantizeLinear": 0, "other": 0}
    for node in made.graph.node:
        if node.op_type == "Add":
            kinds = [producer(made, n).op_type if n not in constants(made) else "" for n in node.input]
            readers["DequantizeLinear" if kinds == ["DequantizeLinear"] * 2 else "other"] += 1
        if node.op_type == "MatMul":
            assert all(producer(made, n).op_type == "DequantizeLinear" for n in node.input)
    # Quantized sums: six biases and two residual sums. The others: epsilon and shift of each normalisation, one of
    # Gelu, and the embedding.
    assert readers == {"DequantizeLinear": 8, "other": 8}
    (found,), (plain,) = run(made, None, ids(9)), run(model, None, ids(9))
    assert np.sqrt(np.mean((found - plain) ** 2)) < 0.2 * plain.std()


@pytest.mark.parametrize("weights", (np.int8, np.uint8))
def test_dynamic_products_quantize_a_value_once(weights):
    model = small_encoder()
    made = quantize.dynamic(model, weights=weights)
    onnx.checker.check_model(made, full_check=True)
    found = operators(made)
    assert found.count("MatMulInteger") == 6 and found.count("MatMul") == 2  # products of two activations
    assert found.count("DynamicQuantizeLinear") == 4  # one for query, key and value together
    node = next(n for n in made.graph.node if n.op_type == "MatMulInteger")
    assert constants(made)[node.input[1]].dtype == weights and constants(made)[node.input[3]] == (0 if weights == np.int8 else 128)
    (found,), (plain,) = run(made, None, ids(9)), run(model, None, ids(9))
    assert 0 < np.sqrt(np.mean((found - plain) ** 2)) < 0.1 * plain.std()


def test_dynamic_convolutions_add_their_bias_in_float():
    model = small_net(lambda net: net.relu(net.conv("data", 6, 3, stride=2, pad=1, group=3)))
    made = quantize.dynamic(model, ("Conv",))
    onnx.checker.check_model(made, full_check=True)
    assert operators(made) == ["DynamicQuantizeLinear", "ConvInteger", "Cast", "Mul", "Mul", "Add", "Relu"]
    (found,), (plain,) = run(made, None, feeds(1)[0]), run(model, None, feeds(1)[0])
    assert found.shape == plain.shape and 0 < np.abs(found - plain).max() < 0.1 * plain.max()
