# SPDX-License-Identifier: Apache-2.0
"""Small models in which rewrites apply that other models have not, as text of onnx.parser."""
import onnx.parser

# Name of the rewrite: inputs and outputs, initializers, nodes.
MODELS = {
    "BlocksOfOne": ("float[1,2,4,4] x", "float[1,2,4,4] y", "",
                    "a = DepthToSpace <blocksize = 1> (x)  b = Relu(a)  y = SpaceToDepth <blocksize = 1> (b)"),
    "ClipWithoutBounds": ("float[N] x", "float[N] y", "", "a = Clip(x)  y = Exp(a)"),
    "ConcatOfConcat": ("float[2,3] a, float[2,3] b", "float[2,9] y", "",
                       "c = Concat <axis = 1> (a, b)  y = Concat <axis = 1> (c, a)"),
    "ConcatOfShapes": ("float[A,B,C,D] x, float[N] z", "float[R,S] y", "",
                       "a = Shape <start = 1, end = 2> (x)  b = Shape <start = 2, end = 3> (x)  "
                       "c = Concat <axis = 0> (a, b)  y = Reshape(z, c)"),
    "ConstantIntoBody": ("bool c, float[2] x", "float[2] y", "float[2] k = {1, 2}",
                         "y = If (c) <then_branch = t () => (float[2] o) { o = Add(x, k) }, "
                         "else_branch = e () => (float[2] p) { p = Mul(x, k) }>"),
    "ConvOfTransposed": ("float[1,1,5,5] x", "float[1,1,7,7] y", "float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}",
                         "y = ConvTranspose(x, w)"),
    "DoneBefore": ("float[N] x", "float[N] y", "", "a = Relu(x)  b = Relu(a)  y = Exp(b)"),
    "ExpandIntoMatMul": ("float[1,2,3] a, float[4,3,5] b", "float[4,2,5] y", "int64[3] s = {4, 2, 3}",
                         "e = Expand(a, s)  y = MatMul(e, b)"),
    "FusedMulRelu": ("float[N,4] a, float[N,4] b", "float[N,4] y", "", "m = Mul(a, b)  y = Relu(m)"),
    "GatherAll": ("float[3,2] x", "float[3,2] y", "int64[3] i = {0, 1, 2}", "g = Gather(x, i)  y = Exp(g)"),
    "GatherOfShape": ("float[A,B,C] x, float[N] z", "float[R,S] y", "int64[2] i = {1, 2}",
                      "s = Shape(x)  g = Gather(s, i)  y = Reshape(z, g)"),
    "GroupNorm": ("float[2,4,3,3] x", "float[2,4,3,3] y",
                  "int64[3] g = {0, 2, -1}, int64[4] back = {2, 4, 3, 3}, float[2] one = {1, 1}, float[2] zero = {0, 0}, "
                  "float[4,1,1] s = {1, 2, 3, 4}, float[4,1,1] b = {1, 2, 3, 4}",
                  "r = Reshape(x, g)  n = InstanceNormalization(r, one, zero)  t = Reshape(n, back)  m = Mul(t, s)  "
                  "y = Add(m, b)"),
    "GroupedQueries": ("float[1,4,3,8] q, float[1,2,5,8] k, float[1,2,5,8] v", "float[1,4,3,8] y",
                       "int64[1] two = {2}, int64[5] e = {1, 2, 2, 5, 8}, int64[4] r = {1, 4, 5, 8}",
                       "ku = Unsqueeze(k, two)  ke = Expand(ku, e)  kr = Reshape(ke, r)  vu = Unsqueeze(v, two)  "
                       "ve = Expand(vu, e)  vr = Reshape(ve, r)  y = Attention(q, kr, vr)", 23),
    "JoinQuantized": ("uint8[2,3] a, uint8[2,3] b", "float[2,6] y", "float s = {0.5}, uint8 z = {3}",
                      "c = DequantizeLinear(a, s, z)  d = DequantizeLinear(b, s, z)  e = Concat <axis = 1> (c, d)  "
                      "y = Exp(e)"),
    "JoinSizes": ("float[N,4] x, float[N,4] z", "float[N] p, float[N] q", "",
                  "s = Shape <start = 0, end = 1> (x)  t = Shape <start = 0, end = 1> (z)  "
                  "p = ConstantOfShape(s)  q = ConstantOfShape(t)"),
    "LeakyRelu": ("float[N,4] x", "float[N,4] y", "float a = {0.1}", "m = Mul(x, a)  y = Max(x, m)"),
    "LogSoftmax": ("float[N,4] x", "float[N,4] y", "int64[1] last = {-1}",
                   "m = ReduceMax <keepdims = 1> (x, last)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum <keepdims = 1> (e, last)"
                   "  l = Log(s)  y = Sub(d, l)"),
    "NormCast": ("float16[N,4] x", "float16[N,4] y", "float[4] s = {1, 2, 3, 4}, float[4] b = {0, 0, 0, 0}",
                 "c = Cast <to = 1> (x)  n = LayerNormalization(c, s, b)  y = Cast <to = 10> (n)"),
    "OnlyOperand": ("float[N] x", "float[N] y", "", "a = Sum(x)  b = Max(a)  y = Exp(b)"),
    "OneCopy": ("float[N,2] x", "float[N,2] y", "int64[2] once = {1, 1}", "t = Tile(x, once)  y = Exp(t)"),
    "PRelu": ("float[N,4] x", "float[N,4] y", "float[4] c = {-0.1, -0.2, -0.3, -0.4}",
              "a = Relu(x)  n = Neg(x)  b = Relu(n)  m = Mul(b, c)  y = Add(a, m)"),
    "PadIntoPool": ("float[1,2,4,4] x", "float[1,2,3,3] y", "int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}",
                    "a = Pad(x, p)  y = AveragePool <kernel_shape = [2,2], strides = [2,2], count_include_pad = 1> (a)"),
    "PastKeys": ("float[1,2,1,8] q, float[1,2,P,8] pk, float[1,2,1,8] k, float[1,2,P,8] pv, float[1,2,1,8] v",
                 "float[1,2,1,8] y, float[1,2,T,8] nk, float[1,2,T,8] nv", "",
                 "nk = Concat <axis = 2> (pk, k)  nv = Concat <axis = 2> (pv, v)  y = Attention(q, nk, nv)", 23),
    "PoolFirst": ("float[1,1,6,6] x", "float[1,2,2,2] y",
                  "float[2,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}",
                  "c = Conv(x, w)  r = Relu(c)  y = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)"),
    "QLinearAverage": ("uint8[1,2,6,6] x", "uint8[1,2,3,3] y", "float s = {0.5}, uint8 z = {3}",
                       "a = DequantizeLinear(x, s, z)  p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (a)  "
                       "y = QuantizeLinear(p, s, z)"),
    "QLinearAverage.global": ("uint8[1,2,6,6] x", "uint8[1,2,1,1] y", "float s = {0.5}, uint8 z = {3}",
                              "a = DequantizeLinear(x, s, z)  p = GlobalAveragePool(a)  y = QuantizeLinear(p, s, z)"),
    "QLinearAverage.dilated": ("uint8[1,2,6,6] x", "uint8[1,2,4,4] y", "float s = {0.5}, uint8 z = {3}",
                               "a = DequantizeLinear(x, s, z)  p = AveragePool <kernel_shape = [2,2], dilations = [2,2]> (a)"
                               "  y = QuantizeLinear(p, s, z)", 19),
    "QLinearTransposedConv": ("uint8[1,1,4,4] x", "uint8[1,1,8,8] y",
                              "float s = {0.5}, uint8 z = {3}, int8[1,1,2,2] w = {1, 2, 3, 4}, int8 wz = {0}",
                              "a = DequantizeLinear(x, s, z)  b = DequantizeLinear(w, s, wz)  "
                              "c = ConvTranspose <strides = [2,2]> (a, b)  y = QuantizeLinear(c, s, z)"),
    "QuantizeParts": ("uint8[1,2,3] a, float[1,2,3] b", "uint8[1,4,3] y", "float s = {0.5}, uint8 z = {3}",
                      "c = DequantizeLinear(a, s, z)  d = Exp(b)  e = Concat <axis = 1> (c, d)  y = QuantizeLinear(e, s, z)"),
    "SameSize": ("float[1,1,4,4] x", "float[1,1,4,4] y", "float[4] f = {1, 1, 1, 1}",
                 "r = Resize <mode = \"linear\"> (x, , f)  y = Exp(r)"),
    "SliceOfShape": ("float[A,B,C] x, float[N] z", "float[R,S] y", "int64[1] one = {1}, int64[1] three = {3}",
                     "s = Shape(x)  g = Slice(s, one, three)  y = Reshape(z, g)"),
    "Softmax": ("float[N,4] x", "float[N,4] y", "int64[1] last = {-1}",
                "m = ReduceMax <keepdims = 1> (x, last)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum <keepdims = 1> (e, last)  "
                "y = Div(e, s)"),
    "Softplus": ("float[N,4] x", "float[N,4] y", "float one = {1}",
                 "e = Exp(x)  a = Add(one, e)  l = Log(a)  t = Tanh(l)  y = Exp(t)"),
    "SplitOfConcat": ("float[2,3] a, float[2,3] b", "float[2,3] p, float[2,3] q", "int64[2] s = {3, 3}",
                      "c = Concat <axis = 1> (a, b)  u, v = Split <axis = 1> (c, s)  p = Exp(u)  q = Exp(v)"),
    "Undone": ("float[N] x", "float[N] y", "", "a = Neg(x)  b = Neg(a)  y = Exp(b)"),
}
IR_OF_OPSET = {18: 8, 19: 9, 23: 11}


def models():
    """Name and model of each."""
    for name, (inputs, outputs, constants, nodes, *opset) in MODELS.items():
        version = opset[0] if opset else 18
        constants = f"<{constants}>" if constants else ""
        yield name, onnx.parser.parse_model(f"""<ir_version: {IR_OF_OPSET[version]}, opset_import: ["": {version}]>
            rewrite ({inputs}) => ({outputs}) {constants} {{ {nodes} }}""")
