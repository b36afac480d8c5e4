# SPDX-License-Identifier: Apache-2.0
"""What the host runs: control flow, sequences, optionals, texts."""
import numpy as np
from onnx import TensorProto, helper
from record import Case, rng, tensor_proto

DOMAIN = "ai.onnx"
F32, I64 = np.float32, np.int64
FLOAT, INT64, BOOL, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
node = helper.make_node


def info(name, dtype, dims=None):
    return helper.make_tensor_value_info(name, dtype, dims)


def body(nodes, inputs, outputs, name="body", **constants):
    return helper.make_graph(nodes, name, inputs, outputs, [tensor_proto(k, v) for k, v in constants.items()])


def case(op, name, nodes, inputs, outputs, initializers=None, opset=17, expected=None):
    return Case(DOMAIN, op, name, nodes, inputs, outputs, initializers=initializers or {}, opsets={"": opset},
                expected=expected)


def one(op, name, inputs, outputs=("y",), opset=17, constant=(), expected=None, **attrs):
    names = [f"x{i}" for i in range(len(inputs))]
    given = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if i not in constant}
    kept = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if i in constant}
    return case(op, name, [node(op, names, list(outputs), **attrs)], given, list(outputs), kept, opset, expected)


def texts(*values, shape=None):
    out = np.array(values, dtype=object)
    return out.reshape(shape) if shape is not None else out


def loops():
    r = rng("loops")
    x = r.uniform(-1, 1, (2, 3)).astype(F32)
    step = body(
        [node("Add", ["a", "x"], ["b"]), node("Mul", ["b", "half"], ["m"]), node("Less", ["i", "last"], ["on_next"])],
        [info("i", INT64, []), info("on", BOOL, []), info("a", FLOAT, [2, 3])],
        [info("on_next", BOOL, []), info("b", FLOAT, [2, 3]), info("m", FLOAT, [2, 3])],
        half=np.array(0.5, F32))
    for name, trips, last in (("counted", 3, 9), ("ended_by_its_condition", 9, 2), ("never", 0, 9)):
        yield case("Loop", name, [node("Loop", ["n", "go", "a0"], ["a", "ms"], body=step)],
                   {"x": x, "a0": x + 1, "last": np.array(last, I64)}, ["a", "ms"],
                   {"n": np.array(trips, I64), "go": np.array(True)})
    grow = body(
        [node("Identity", ["on"], ["on_next"]), node("Concat", ["a", "a"], ["b"], axis=0),
         node("SequenceInsert", ["s", "b"], ["t"])],
        [info("i", INT64, []), info("on", BOOL, []), info("a", FLOAT, [None]),
         helper.make_tensor_sequence_value_info("s", FLOAT, None)],
        [info("on_next", BOOL, []), info("b", FLOAT, [None]),
         helper.make_tensor_sequence_value_info("t", FLOAT, None)])
    yield case("Loop", "shapes_grow_and_a_sequence",
               [node("SequenceEmpty", [], ["s0"]), node("Loop", ["n", "", "a0", "s0"], ["a", "s"], body=grow),
                node("ConcatFromSequence", ["s"], ["all"], axis=0)],
               {"a0": np.array([1, 2], F32)}, ["a", "all"], {"n": np.array(3, I64)})
    inner = body(
        [node("Identity", ["on2"], ["on3"]), node("Add", ["c", "j"], ["d0"]), node("Add", ["d0", "i"], ["d"])],
        [info("j", INT64, []), info("on2", BOOL, []), info("c", INT64, [])],
        [info("on3", BOOL, []), info("d", INT64, [])], name="inner")
    outer = body(
        [node("Identity", ["on"], ["on1"]), node("Loop", ["n", "", "a"], ["b"], body=inner)],
        [info("i", INT64, []), info("on", BOOL, []), info("a", INT64, [])],
        [info("on1", BOOL, []), info("b", INT64, []), info("b", INT64, [])])
    yield case("Loop", "nested_with_captures_of_both", [node("Loop", ["n", "", "a0"], ["a", "each"], body=outer)],
               {"a0": np.array(5, I64), "n": np.array(3, I64)}, ["a", "each"])


def scans():
    r = rng("scans")
    x, y = r.uniform(-1, 1, (2, 4, 3)).astype(F32), r.uniform(-1, 1, (2, 3, 4)).astype(F32)
    step = body(
        [node("Add", ["s", "xt"], ["s_next"]), node("Mul", ["s_next", "yt"], ["m"]), node("Add", ["m", "bias"], ["o"]),
         node("Neg", ["xt"], ["n"])],
        [info("s", FLOAT, [2, 3]), info("xt", FLOAT, [2, 3]), info("yt", FLOAT, [2, 3])],
        [info("s_next", FLOAT, [2, 3]), info("o", FLOAT, [2, 3]), info("n", FLOAT, [2, 3])])
    for name, directions, out_axes, out_directions in (
            ("axes", [0, 0], [0, 0], [0, 0]), ("one_runs_back", [1, 0], [1, -1], [0, 1]),
            ("all_run_back", [1, 1], [2, 0], [1, 1])):
        yield case("Scan", name,
                   [node("Scan", ["s0", "x", "y"], ["s", "o", "negated"], body=step, num_scan_inputs=2,
                         scan_input_axes=[1, -1], scan_input_directions=directions, scan_output_axes=out_axes,
                         scan_output_directions=out_directions)],
                   {"s0": np.ones((2, 3), F32), "x": x, "y": y, "bias": np.array([1, 2, 3], F32)}, ["s", "o", "negated"])
    batched = body([node("Add", ["s", "xt"], ["s_next"]), node("Identity", ["s_next"], ["o"])],
                   [info("s", FLOAT, [3]), info("xt", FLOAT, [3])], [info("s_next", FLOAT, [3]), info("o", FLOAT, [3])])
    for name, more in (("batched", {}), ("batched_backwards", {"directions": [1]})):
        yield case("Scan", name,
                   [node("Scan", ["n", "s0", "x"], ["s", "o"], body=batched, num_scan_inputs=1, **more)],
                   {"n": np.array([4, 2], I64), "s0": np.zeros((2, 3), F32), "x": x}, ["s", "o"], opset=8)


def sequences():
    r = rng("sequences")
    x = r.uniform(-1, 1, (5, 2)).astype(F32)
    twice = body([node("Add", ["p", "p"], ["q0"]), node("Add", ["q0", "bias"], ["q"]), node("Shape", ["p"], ["n"])],
                 [info("p", FLOAT, [None, 2])], [info("q", FLOAT, [None, 2]), info("n", INT64, [2])])
    yield case("SequenceMap", "with_a_capture",
               [node("SplitToSequence", ["x", "size"], ["pieces"], axis=0),
                node("SequenceMap", ["pieces"], ["qs", "ns"], body=twice),
                node("ConcatFromSequence", ["qs"], ["y"], axis=0),
                node("ConcatFromSequence", ["ns"], ["shapes"], axis=0, new_axis=1)],
               {"x": x, "bias": np.array([1, 2], F32)}, ["y", "shapes"], {"size": np.array(2, I64)})
    for name, at in (("back", None), ("front", 0), ("counted_from_the_end", -1)):
        yield case("SequenceInsert", name,
                   [node("SequenceConstruct", ["a", "b"], ["s"]),
                    node("SequenceInsert", ["s", "c"] + (["at"] if at is not None else []), ["t"]),
                    node("SequenceErase", ["t"], ["u"]), node("SequenceLength", ["t"], ["n"]),
                    node("ConcatFromSequence", ["t"], ["y"], axis=0)],
                   {"a": x[:1], "b": x[1:3], "c": x[3:]}, ["u", "n", "y"],
                   {} if at is None else {"at": np.array(at, I64)})
    words = texts("a", "bc", "", "d")
    yield case("SplitToSequence", "texts",
               [node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
                node("SequenceAt", ["s", "at"], ["y"]), node("ConcatFromSequence", ["s"], ["z"], axis=0, new_axis=1)],
               {"x": words}, ["y", "z"], {"at": np.array(-2, I64)})


def text_operators():
    words = texts("the quick", " brown  fox ", "", "jumps,over,,", "\tlazy\ndog", "日本 語", shape=(2, 3))
    for name, attrs in (("white_space", {}), ("white_space_once", {"maxsplit": 1}), ("commas", {"delimiter": ","}),
                        ("commas_twice", {"delimiter": ",", "maxsplit": 2}), ("texts", {"delimiter": "o"})):
        # The standard's reference splits like Python; the peer splits at blanks alone and finds no part in "".
        parts = [w.split(attrs.get("delimiter"), attrs.get("maxsplit", -1)) for w in words.reshape(-1)]
        width = max(map(len, parts))
        yield one("StringSplit", name, [words], ("y", "n"), 20, **attrs, expected={
            "y": texts(*[t for p in parts for t in p + [""] * (width - len(p))], shape=(2, 3, width)),
            "n": np.array([len(p) for p in parts], I64).reshape(2, 3)})
    yield one("StringConcat", "broadcast", [texts("a", "b", "", shape=(3, 1)), texts("x", "é")], opset=20)
    yield one("StringConcat", "empty", [np.zeros((0, 2), object), texts("x", "y")], opset=20,
              expected={"y": np.zeros((0, 2), object)})
    patterns = {
        "choice": "a|bc|", "class": "[a-c_]+[^x-z]?", "classes": r"\d+\.\w*\s?", "posix": "[[:alpha:]]+[[:^digit:]]",
        "counts": "(ab){2,3}c{0,2}?", "case": "(?i)StrA.?", "lines": "(?s)a.b", "groups": r"(?P<n>a+)(?:b|\Q.*\E)$",
        "words": r"\ba+\b.*", "escapes": r"\x61\x{62}\143", "anchors": "^(a|^b)*$"}
    subjects = texts("", "a", "bc", "abab", "ababab", "abababcc", "abc", "a.*", "aa.*", "a\nb", "12.x ", "3.", "STRA", "straß",
                     "strA", "aé", "aa bb", "bbb", "a_cq", "日本")
    for name, pattern in patterns.items():
        yield one("RegexFullMatch", name, [subjects], opset=20, pattern=pattern)
    names = texts("Monday", "tuesday", "WEDNESDAY", "été")
    for name, attrs in (
            ("upper", {"case_change_action": "UPPER"}), ("lower", {"case_change_action": "LOWER"}),
            ("stop_words", {"stopwords": ["monday"], "is_case_sensitive": 0}),
            ("stop_words_of_one_case", {"stopwords": ["monday", "tuesday"], "is_case_sensitive": 1}),
            ("all_stopped", {"stopwords": ["Monday", "tuesday", "WEDNESDAY", "été"], "is_case_sensitive": 1})):
        yield one("StringNormalizer", name, [names], opset=10, locale="C.UTF-8", **attrs)
    yield one("StringNormalizer", "row", [names.reshape(1, 4)], opset=10, stopwords=["tuesday"], is_case_sensitive=1)


def number_texts(values):
    """NumPy's texts, but for the standard's literals and whole numbers without a point."""
    literals = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}
    plain = values.astype(str)
    return np.array([literals.get(t, t[:-2] if t.endswith(".0") else t) for t in plain], dtype=object)


def casts():
    values = np.array([0, -0.0, 1, -1.5, 0.1, 1e-4, 9.9e-5, 1e15, 1e16, 123456789, 3.4e38, 1e-45, 1 / 3,
                       np.inf, -np.inf, np.nan], F32)
    yield one("Cast", "float32_to_texts", [values], to=TEXT, expected={"y": number_texts(values)})
    half = np.array([0.1, 65504, 6e-8, 2048, 1 / 3, -0.5], np.float16)
    yield one("Cast", "float16_to_texts", [half], to=TEXT, expected={"y": number_texts(half)})
    double = np.array([0.1, 1e300, 5e-324, 2 / 3, 1e22, -1e-7])
    yield one("Cast", "float64_to_texts", [double], to=TEXT, expected={"y": number_texts(double)})
    for dtype in (np.int8, np.uint8, np.int32, np.int64, np.uint64):
        limits = np.array([np.iinfo(dtype).min, 0, 7, np.iinfo(dtype).max], dtype)
        yield one("Cast", f"{limits.dtype}_to_texts_and_back", [limits], to=TEXT,
                  expected={"y": limits.astype(str).astype(object)})
    read = texts("3.14", "1e-5", "1E8", "-0.5", "INF", "+inf", "-INF", "NaN", "1000", "7.")
    yield one("Cast", "texts_to_float32", [read], to=FLOAT)
    yield one("Cast", "texts_to_float64", [read], to=TensorProto.DOUBLE)
    yield one("Cast", "texts_to_int64", [texts("12", "-7", "0", "9223372036854775807")], to=INT64)
    yield one("Cast", "fractions_to_int32", [texts("100.5", "-2.9", "1e3")], to=TensorProto.INT32,
              expected={"y": np.array([100, -2, 1000], np.int32)})


def moves():
    x, y = texts("d", "b", "", "a", "b", "日", shape=(2, 3)), texts("p", "q", "r", shape=(1, 3))
    i = np.array([[2, 0], [-1, 1]], I64)
    yield one("Concat", "texts", [x, y], axis=0)
    yield one("Transpose", "texts", [x], perm=[1, 0])
    yield one("Reshape", "texts", [x, np.array([3, -1], I64)], constant=(1,))
    yield one("Gather", "texts", [x, i], axis=1)
    yield one("GatherElements", "texts", [x, i], axis=1)
    yield one("GatherND", "texts", [x, np.array([[1, 2], [0, 0]], I64)])
    yield one("ScatterElements", "texts", [x, i[:, :1], texts("u", "v", shape=(2, 1))], axis=1)
    yield one("ScatterND", "texts", [x, np.array([[1]], I64), y])
    yield one("Slice", "texts", [x, np.array([2], I64), np.array([-9], I64), np.array([1], I64), np.array([-1], I64)],
              constant=(1, 2, 3, 4))
    yield one("Expand", "texts", [y, np.array([2, 3], I64)], constant=(1,))
    yield one("Tile", "texts", [y, np.array([2, 2], I64)], constant=(1,))
    yield one("Where", "texts", [np.array([[True], [False]]), x, y])
    yield one("Equal", "texts", [x, texts("b", "b", "")], opset=19)
    yield one("Compress", "texts", [x, np.array([True, False, True])], axis=1)
    yield one("Split", "texts", [x, np.array([1, 2], I64)], ("a", "b"), constant=(1,), axis=1)
    yield one("Unique", "texts", [x.reshape(-1)], ("y", "first", "inverse", "count"))
    yield one("Unique", "texts_in_order", [x.reshape(-1)], ("y", "first", "inverse", "count"), sorted=0)
    yield one("Unsqueeze", "texts", [x, np.array([0], I64)], constant=(1,))
    yield one("Shape", "texts", [x])
    yield one("Identity", "texts", [x])
    yield one("Pad", "texts", [y, np.array([0, 1, 1, 0], I64), np.array("z", object)], constant=(1, 2),
              expected={"y": texts("z", "p", "q", "r", "z", "z", "z", "z", shape=(2, 4))})
    yield one("NonZero", "texts", [x], expected={"y": np.array([[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]], I64)})
    yield one("OneHot", "texts", [np.array([1, -1], I64), np.array(3, I64), texts("off", "on")], constant=(1,))


def tf_idf():
    row = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], I64)
    grams = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}
    weights = [0.5, 2, 1, 3, 4, 5, 6]
    for name, attrs in (
            ("skips", {"mode": "TF", "min_gram_length": 2, "max_gram_length": 2, "max_skip_count": 5}),
            ("single_items_too", {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1}),
            ("weights", {"mode": "IDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 2,
                         "weights": weights}),
            ("weights_and_counts", {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 3,
                                    "weights": weights})):
        yield one("TfIdfVectorizer", name, [row], opset=9, **grams, **attrs)
    yield one("TfIdfVectorizer", "int32_list", [row[1].astype(np.int32)], opset=9, mode="TF", min_gram_length=1,
              max_gram_length=2, max_skip_count=0, **grams)
    yield one("TfIdfVectorizer", "texts", [texts("a", "b", "a", "c", "a", "b")], opset=9, mode="TF", min_gram_length=1,
              max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2], ngram_indexes=[2, 0, 1, 3],
              pool_strings=["a", "c", "a", "b", "b", "a"])


def flex_attention():
    """The peer lacks the operator: from the standard's formula, in float64 but for what rounds to the inputs' type."""
    scores = [info("s", FLOAT, ["B", "H", "L", "S"])], [info("t", FLOAT, ["B", "H", "L", "S"])]
    capped = body([node("Div", ["s", "cap"], ["a"]), node("Tanh", ["a"], ["b"]), node("Mul", ["b", "cap"], ["t"])],
                  *scores, name="cap", cap=np.array(2, F32))
    masked = body([node("Where", ["mask", "s", "lowest"], ["t"])], *scores, name="mask", lowest=np.array(-np.inf, F32))
    scaled = body([node("Mul", ["s", "keep"], ["t"])], *scores, name="keep", keep=np.array(0.5, F32))
    mask = np.tril(np.ones((4, 5), bool))
    for name, dtype, heads, attrs, score, prob in (
            ("plain", F32, 2, {}, None, None), ("float64", np.float64, 2, {"scale": 0.3}, None, None),
            ("float16", np.float16, 2, {}, None, None), ("capped", F32, 2, {"score_mod": capped}, "cap", None),
            ("mask_from_outside", F32, 2, {"score_mod": masked}, "mask", None),
            ("shared_heads", F32, 1, {"score_mod": capped, "prob_mod": scaled}, "cap", "keep"),
            ("shared_heads_float16", np.float16, 2, {"prob_mod": scaled, "scale": 0.25}, None, "keep")):
        r = rng("flex " + name)
        q = r.uniform(-1, 1, (2, 4 if "shared" in name else 2, 4, 8)).astype(dtype)
        k, v = r.uniform(-1, 1, (2, heads, 5, 8)).astype(dtype), r.uniform(-1, 1, (2, heads, 5, 3)).astype(dtype)
        root = dtype(np.sqrt(F32(attrs.get("scale", 1 / np.sqrt(8)))))
        wide = [np.repeat(t, q.shape[1] // heads, axis=1).astype(float) for t in (k * root, v)]
        s = ((q * root).astype(float) @ wide[0].swapaxes(2, 3)).astype(dtype).astype(float)
        s = 2 * np.tanh(s / 2) if score == "cap" else np.where(mask, s, -np.inf) if score == "mask" else s
        p = np.exp(s - s.max(-1, keepdims=True))
        p = p / p.sum(-1, keepdims=True) * (0.5 if prob else 1)
        inputs = {"q": q, "k": k, "v": v, **({"mask": mask} if score == "mask" else {})}
        yield Case("ai.onnx.preview", "FlexAttention", name,
                   [node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", **attrs)],
                   inputs, ["y"], opsets={"": 22}, expected={"y": (p @ wide[1]).astype(dtype)})


def optionals():
    x = np.array([[1, 2], [3, 4]], F32)
    yield case("Optional", "of_a_tensor", [node("Optional", ["x"], ["o"]), node("OptionalHasElement", ["o"], ["has"]),
                                           node("OptionalGetElement", ["o"], ["y"])],
               {"x": x}, ["has", "y"], opset=18)
    yield case("Optional", "empty",
               [node("Optional", [], ["o"], type=helper.make_tensor_type_proto(FLOAT, [2])),
                node("OptionalHasElement", ["o"], ["has"])], {}, ["has"], opset=18)
    yield case("Optional", "of_a_sequence",
               [node("SequenceConstruct", ["x", "x"], ["s"]), node("Optional", ["s"], ["o"]),
                node("OptionalGetElement", ["o"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=1)],
               {"x": x}, ["y"], opset=18)


def cases():
    for family in (loops, scans, sequences, optionals, text_operators, casts, moves, tf_idf, flex_attention):
        yield from family()
