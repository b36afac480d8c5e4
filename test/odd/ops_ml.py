# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml, text, sequences and signals."""
from draw import F32, F64, HUGE, I32, I64, TEXT, WORDS, np

ML = "ai.onnx.ml"
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
KINDS = [F32, F32, F32, F64, I64, I32]


def rows(d, columns, kinds=None):
    shape = [d.size(1, 4), columns] if d.chance(0.85) else [columns]
    if d.odd(0.06):
        shape = d.pick([[], [columns, 2, columns], [2, columns + 1]])
    return d.data(d.pick(kinds or KINDS), shape)


def reals(d, count):
    return [d.real() for _ in range(max(0, count))]


def finish(d, op, inputs, outputs=1, **attrs):
    d.version(13)
    d.opsets["ai.onnx.ml"] = attrs.pop("opset", d.pick([1, 2, 3]))
    d.finish(op, inputs, outputs, ML, chain=False, **attrs)


def binarizer(d):
    finish(d, "Binarizer", [rows(d, 3, [F32])], **d.maybe({}, threshold=d.real()))


def scaler(d):
    n = d.int(1, 4)
    sized = lambda: reals(d, d.pick([1, n, n]) + (1 if d.odd(0.1) else 0))
    finish(d, "Scaler", [rows(d, n)], **d.maybe({}, 0.8, offset=sized(), scale=sized()))


def normalizer(d):
    finish(d, "Normalizer", [rows(d, 3)], **d.maybe({}, norm=d.pick(["MAX", "L1", "L2"]) if not d.odd(0.05) else "L3"))


def imputer(d):
    n = d.int(1, 4)
    if d.chance(0.7):
        return finish(d, "Imputer", [rows(d, n, [F32, F64])], imputed_value_floats=reals(d, d.pick([1, n])),
                      **d.maybe({}, replaced_value_float=d.pick([0.0, 0.5, float("nan")])))
    finish(d, "Imputer", [rows(d, n, [I64])], imputed_value_int64s=[d.int(-3, 3) for _ in range(d.pick([1, n]))],
           replaced_value_int64=d.int(-1, 1))


def array_feature(d):
    n = d.int(1, 5)
    at = [d.int(0, n - 1) if not d.odd(0.1) else d.pick([-1, n] + HUGE) for _ in range(d.size(1, 4))]
    finish(d, "ArrayFeatureExtractor", [d.data(d.pick([F32, F64, I64, I32, TEXT]), d.shape(0, 2) + [n]),
                                        np.array(at, I64) if d.chance(0.7) else np.array([at], I64)])


def label_encoder(d):
    keys, values = d.pick([("strings", "int64s"), ("int64s", "strings"), ("floats", "int64s"), ("int64s", "floats"),
                           ("strings", "floats"), ("strings", "strings"), ("int64s", "int64s"), ("floats", "floats")])
    n = d.int(1, 4)
    made = {"strings": lambda c: [d.pick(WORDS) for _ in range(c)], "int64s": lambda c: [d.int(-3, 4) for _ in range(c)],
            "floats": lambda c: [float(d.int(-3, 3)) / 2 if not d.special else float("nan") for _ in range(c)]}
    kinds = {"strings": TEXT, "int64s": I64, "floats": F32}
    listed = list(dict.fromkeys(made[keys](n)))  # each key once: of two equal ones either may count
    n = len(listed)
    attrs = {"keys_" + keys: listed, "values_" + values: made[values](n + (1 if d.odd(0.06) else 0))}
    if d.chance(0.5):
        name = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}[values]
        attrs[name] = made[values](1)[0]
    finish(d, "LabelEncoder", [d.data(kinds[keys], d.shape(0, 3))], opset=2, **attrs)


def category_mapper(d):
    n = d.int(1, 4)
    ints = [int(i) for i in d.random.permutation(9)[:n]]
    words = [WORDS[i] for i in d.random.permutation(len(WORDS))[:n]]
    finish(d, "CategoryMapper", [d.data(d.pick([TEXT, I64]), d.shape(0, 3))], cats_int64s=ints, cats_strings=words,
           **d.maybe({}, default_int64=d.int(-5, 5), default_string="none"))


def one_hot_encoder(d):
    text = d.chance(0.4)
    n = d.int(1, 4)
    cats = {"cats_strings": WORDS[:n]} if text else {"cats_int64s": list(range(-1, n - 1))}
    finish(d, "OneHotEncoder", [d.data(TEXT if text else d.pick([I64, F32, I32, F64]), d.shape(0 if d.odd() else 1, 3))],
           **cats, **d.maybe({}, zeros=d.flag()))


def feature_vectorizer(d):
    sizes = [d.int(1, 3) for _ in range(d.int(1, 3))]
    n = d.size(1, 3)
    finish(d, "FeatureVectorizer", [d.data(F32, [n, s]) for s in sizes],
           inputdimensions=[s + (d.pick([-1, 1, 2**40]) if d.odd(0.1) else 0) for s in sizes])


def linear_classifier(d):
    features, classes = d.int(1, 4), d.int(1, 3)
    attrs = {"coefficients": reals(d, features * classes + (1 if d.odd(0.1) else 0))}
    labels = max(2, classes) if d.chance(0.8) else classes
    if d.odd(0.1):
        labels += 1
    attrs["classlabels_ints"] = list(range(3, 3 + labels))
    d.maybe(attrs, intercepts=reals(d, classes), post_transform=d.pick(POSTS), multi_class=d.int(0, 1))
    finish(d, "LinearClassifier", [rows(d, features)], 2, **attrs)


def linear_regressor(d):
    features, targets = d.int(1, 4), d.int(1, 3)
    attrs = {"coefficients": reals(d, features * targets + (1 if d.odd(0.1) else 0)), "targets": targets}
    d.maybe(attrs, intercepts=reals(d, targets), post_transform=d.pick(POSTS[:4]))
    finish(d, "LinearRegressor", [rows(d, features, [F32])], **attrs)


def svm_regressor(d):
    features, vectors = d.int(1, 3), d.int(1, 4)
    attrs = {"coefficients": reals(d, vectors), "support_vectors": reals(d, vectors * features + (1 if d.odd() else 0)),
             "rho": reals(d, 1), "n_supports": vectors if not d.odd(0.05) else d.pick([0, -1, vectors + 1, 2**40]),
             "kernel_type": d.pick(["LINEAR", "POLY", "RBF", "SIGMOID"]),
             "kernel_params": [d.real(0.1, 1), d.real(), float(d.int(1, 3))]}
    d.maybe(attrs, 0.3, one_class=d.flag())
    finish(d, "SVMRegressor", [rows(d, features, [F32])], **attrs)


def svm_classifier(d):
    features, classes = d.int(1, 3), d.int(2, 3)
    per = [d.int(1, 2) for _ in range(classes)]
    vectors = sum(per)
    pairs = classes * (classes - 1) // 2
    attrs = {"coefficients": reals(d, vectors * (classes - 1)), "vectors_per_class": per,
             "support_vectors": reals(d, vectors * features + (1 if d.odd() else 0)), "rho": reals(d, pairs),
             "kernel_type": d.pick(["LINEAR", "POLY", "RBF", "SIGMOID"]), "classlabels_ints": list(range(classes)),
             "kernel_params": [d.real(0.1, 1), d.real(), float(d.int(1, 3))]}
    if d.chance(0.3):
        attrs.update(prob_a=reals(d, pairs), prob_b=reals(d, pairs))
    d.maybe(attrs, 0.3, post_transform=d.pick(POSTS[:4]))
    finish(d, "SVMClassifier", [rows(d, features, [F32])], 2, **attrs)


def tree(d, classes):
    """Nodes and votes of small trees; at times one that points nowhere."""
    nodes, votes = [], []
    for t in range(d.int(1, 3)):
        deep = d.int(0, 2)
        count = 2 ** (deep + 1) - 1
        for i in range(count):
            leaf = 2 * i + 2 >= count
            nodes.append([t, i, d.int(0, 2), "LEAF" if leaf else d.pick(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT",
                          "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"]), d.real(), 0 if leaf else 2 * i + 1,
                          0 if leaf else 2 * i + 2])
            if leaf:
                votes.append([t, i, d.int(0, classes - 1), d.real()])
    if d.odd():
        nodes[d.int(0, len(nodes) - 1)][d.pick([2, 5, 6])] = d.pick([-1, 99, 2**40, 0])
    if d.odd(0.05):
        votes[0][d.pick([0, 1, 2])] = d.pick([-1, 77])
    return [list(c) for c in zip(*nodes)], [list(c) for c in zip(*votes)]


def tree_ensemble(op, stem):
    def make(d):
        classes = d.int(1, 3)
        nodes, votes = tree(d, classes)
        names = ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids"]
        attrs = {"nodes_" + n: v for n, v in zip(names, nodes)}
        attrs.update({f"{stem}_{n}": v for n, v in zip(["treeids", "nodeids", "ids", "weights"], votes)})
        d.maybe(attrs, 0.3, post_transform=d.pick(POSTS[:4]))
        if stem == "target":
            attrs["n_targets"] = classes
            d.maybe(attrs, 0.4, aggregate_function=d.pick(["SUM", "AVERAGE", "MIN", "MAX"]))
            d.maybe(attrs, 0.3, base_values=reals(d, classes))
        else:
            attrs["classlabels_int64s"] = list(range(max(2, classes)))
        finish(d, op, [rows(d, 3)], 1 if stem == "target" else 2, **attrs)
    return make


# ------------------------------------------------------------------ text
def string_normalizer(d):
    d.version(10)
    shape = [d.int(0, 5)] if d.chance(0.6) else [1, d.int(1, 5)]
    if d.odd():
        shape = d.pick([[2, 2], [], [1, 1, 2]])
    d.finish("StringNormalizer", [d.data(TEXT, shape)], locale="C", **d.maybe(
        {}, case_change_action=d.pick(["NONE", "LOWER", "UPPER"]), is_case_sensitive=d.flag(),
        stopwords=[d.pick(WORDS) for _ in range(d.int(1, 3))]))


def string_concat(d):
    d.version(20)
    shape = d.shape()
    d.finish("StringConcat", [d.data(TEXT, shape), d.data(TEXT, d.broadcastable(shape))])


def string_split(d):
    d.version(20)
    d.finish("StringSplit", [d.data(TEXT, d.shape(0, 3))], 2, **d.maybe(
        {}, delimiter=d.pick([",", " ", "", "a", "ab"]), maxsplit=d.pick([0, 1, 2, -1] + HUGE if d.odd() else [1, 2])))


def regex_match(d):
    d.version(20)
    d.finish("RegexFullMatch", [d.data(TEXT, d.shape(0, 3))], pattern=d.pick(["a.*", "[a-z]+", "", "(", "\\d+", ".*"]))


def tf_idf(d):
    d.version(9)
    text = d.chance(0.3)
    pool = WORDS[:6] if text else list(range(6))
    ones, twos = d.int(1, 3), d.int(0, 3)
    pairs = [(a, b) for a in pool for b in pool]
    chosen = [pairs[i] for i in d.random.permutation(len(pairs))[:twos]]
    grams = [pool[i] for i in d.random.permutation(len(pool))[:ones]] + [g for pair in chosen for g in pair]
    counts = [0, ones] if twos or d.chance(0.5) else [0]
    indexes = [int(i) for i in d.random.permutation(ones + twos)]
    if d.odd():
        counts = d.pick([[0, 99], [1], [0, -1], [0, ones + 1]])
    if d.odd(0.1):
        indexes[0] = d.pick([-1, 2**40, 50])
    attrs = {"mode": d.pick(["TF", "IDF", "TFIDF"]), "min_gram_length": 1, "max_gram_length": d.int(1, 2),
             "max_skip_count": d.int(0, 2), "ngram_counts": counts, "ngram_indexes": indexes,
             "pool_strings" if text else "pool_int64s": grams}
    d.maybe(attrs, 0.5, weights=reals(d, len(indexes)))
    shape = d.shape(1, 2) if not d.odd(0.1) else d.pick([[], [1, 2, 3]])
    d.finish("TfIdfVectorizer", [d.data(TEXT, shape) if text else d.data(d.pick([I64, I32]), shape, 0, 6)], **attrs)


# ------------------------------------------------------------------ sequences
def sequence(d, dtype, shapes=None):
    count = d.int(1, 3)
    shape = d.shape(1, 3)
    return d.node("SequenceConstruct", [d.data(dtype, shape if shapes == "equal" else d.shape(1, 3))
                                        for _ in range(count)])[0], count, shape


def sequence_at(d):
    d.version(11)
    made, count, _ = sequence(d, d.pick([F32, I64, TEXT]))
    at = d.int(-count, count - 1) if not d.odd() else d.pick([count, -count - 1] + HUGE)
    d.finish("SequenceAt", [made, np.array(at, I64)], chain=False)


def sequence_erase(d):
    d.version(11)
    made, count, _ = sequence(d, F32)
    at = d.int(-count, count - 1) if not d.odd() else d.pick([count, -count - 1] + HUGE)
    d.finish("SequenceErase", [made, np.array(at, I64) if d.chance(0.8) else None], chain=False)


def sequence_insert(d):
    d.version(11)
    made, count, _ = sequence(d, F32)
    at = d.int(-count, count) if not d.odd() else d.pick([count + 1, -count - 1] + HUGE)
    d.finish("SequenceInsert", [made, d.data(F32, d.shape()), np.array(at, I64) if d.chance(0.8) else None],
             chain=False)


def sequence_length(d):
    d.version(11)
    d.finish("SequenceLength", [sequence(d, F32)[0]], chain=False)


def concat_from_sequence(d):
    d.version(11)
    made, _, shape = sequence(d, d.pick([F32, I64]), "equal")
    new = d.flag()
    d.finish("ConcatFromSequence", [made], chain=False, axis=d.axis(len(shape) + (1 if new == 1 else 0)),
             **({"new_axis": new} if new or d.chance(0.5) else {}))


def split_to_sequence(d):
    d.version(11)
    shape = d.shape(1, 3)
    axis = d.int(0, len(shape) - 1)
    n = shape[axis]
    cut = d.int(0, n)
    split = d.pick([None, np.array(d.int(1, 3), I64), np.array([cut, n - cut], I64)])
    if split is not None and d.odd():
        split = d.pick([np.array(0, I64), np.array(-1, I64), np.array([n, 1], I64), np.array(2**40, I64)])
    d.finish("SplitToSequence", [d.data(d.pick([F32, I64, I32, TEXT]), shape), split], chain=False,
             **d.maybe({}, axis=d.pick([axis, axis - len(shape)]) if not d.odd(0.1) else d.axis(len(shape)),
                       keepdims=d.flag()))


# ------------------------------------------------------------------ signals
def dft(d):
    d.version(17)
    shape = [d.size(1, 2)] + [d.size(1, 9) for _ in range(d.int(1, 2))] + [d.int(1, 2) if not d.odd(0.06) else 3]
    axis = d.int(1, len(shape) - 2) if not d.odd(0.1) else d.pick([0, -1, len(shape) - 1, len(shape)] + HUGE)
    length = None
    if d.chance(0.4):
        length = np.array(d.int(1, 12) if not d.odd() else d.pick([0, -1, 2**40]), I64)
    attrs = d.maybe({}, 0.5, inverse=d.flag(), onesided=d.flag())
    if d.version() < 20:
        attrs["axis"] = axis
        return d.finish("DFT", [d.data(d.pick([F32, F64]), shape), length], chain=False, **attrs)
    d.finish("DFT", [d.data(d.pick([F32, F64]), shape), length, np.array(axis, I64) if d.chance(0.7) else None],
             chain=False, **attrs)


def stft(d):
    d.version(17)
    n, length = d.int(4, 20), d.int(2, 6)
    step = d.int(1, 4) if not d.odd() else d.pick([0, -1, 2**40])
    dtype = d.pick([F32, F32, F64])
    window = d.data(dtype, [length if not d.odd(0.1) else length + 1]) if d.chance(0.6) else None
    size = np.array(length if not d.odd(0.1) else d.pick([0, -1, 50]), I64) if window is None or d.chance(0.5) else None
    real = d.chance(0.8)
    d.finish("STFT", [d.data(dtype, [d.size(1, 2), n, 1 if real else 2]), np.array(step, I64), window, size],
             chain=False, **({"onesided": d.flag()} if d.chance(0.6) else {}))


def window(op):
    def make(d):
        d.version(17)
        size = d.int(1, 12) if not d.odd() else d.pick([0, -1, 2**40, -2**63])
        d.finish(op, [d.input(np.array(size, d.pick([I64, I32]) if -2**31 < size < 2**31 else I64), 0.6)],
                 **d.maybe({}, periodic=d.flag(), output_datatype=d.pick([1, 11])))
    return make


def mel(d):
    d.version(17)
    scalar = lambda v, t: d.input(np.array(v, t), 0.7)
    top = d.real(100, 8000)
    d.finish("MelWeightMatrix", [
        scalar(d.int(1, 8) if not d.odd(0.1) else d.pick([0, -1, 2**40]), I64),
        scalar(d.pick([8, 16, 32]) if not d.odd(0.1) else d.pick([0, -3, 2**40]), I64),
        scalar(d.pick([8000, 16000]) if not d.odd(0.1) else 0, I64), scalar(d.real(0, 80), F32), scalar(top, F32)],
        **d.maybe({}, output_datatype=d.pick([1, 11])))


GENERATORS = {
    **{(ML, op): make for op, make in {
        "Binarizer": binarizer, "Scaler": scaler, "Normalizer": normalizer, "Imputer": imputer,
        "ArrayFeatureExtractor": array_feature, "LabelEncoder": label_encoder, "CategoryMapper": category_mapper,
        "OneHotEncoder": one_hot_encoder, "FeatureVectorizer": feature_vectorizer,
        "LinearClassifier": linear_classifier, "LinearRegressor": linear_regressor, "SVMRegressor": svm_regressor,
        "SVMClassifier": svm_classifier, "TreeEnsembleRegressor": tree_ensemble("TreeEnsembleRegressor", "target"),
        "TreeEnsembleClassifier": tree_ensemble("TreeEnsembleClassifier", "class")}.items()},
    **{("", op): make for op, make in {
        "StringNormalizer": string_normalizer, "StringConcat": string_concat, "StringSplit": string_split,
        "RegexFullMatch": regex_match, "TfIdfVectorizer": tf_idf, "SequenceAt": sequence_at,
        "SequenceErase": sequence_erase, "SequenceInsert": sequence_insert, "SequenceLength": sequence_length,
        "ConcatFromSequence": concat_from_sequence, "SplitToSequence": split_to_sequence, "DFT": dft, "STFT": stft,
        "HannWindow": window("HannWindow"), "HammingWindow": window("HammingWindow"),
        "BlackmanWindow": window("BlackmanWindow"), "MelWeightMatrix": mel}.items()}}
