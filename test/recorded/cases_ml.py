# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml: each operator alone, and small models in the layouts that skl2onnx and onnxmltools (XGBoost, LightGBM)
write. The models are made here from random numbers; nothing is trained."""
import numpy as np
from onnx import TensorProto, helper
from record import Case, rng

ML = "ai.onnx.ml"
F = np.float32
NAN = float("nan")
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
NUMBERS = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32}


def one(op, name, inputs, outputs, opset=1, expected=None, **attrs):
    node = helper.make_node(op, list(inputs), outputs, domain=ML, **attrs)
    return Case(ML, op, name, [node], inputs, outputs, opsets={ML: opset}, expected=expected)


def texts(*words):
    return np.array(words, dtype=object)


# ------------------------------------------------------------------ trees
class Forest:
    """Random trees as rows (tree, node, feature, mode, value, yes, no, missing) and votes (tree, node, target, weight)."""

    def __init__(self, random, trees, depth, features, targets, modes=("BRANCH_LEQ",), votes="one", weights=(-1, 1),
                 missing=False, grid=None):
        self.rows, self.votes, self.random = [], [], random
        for tree in range(trees):
            self.count = 0
            self.grow(tree, depth, features, targets, modes, votes, weights, missing, grid)

    def grow(self, tree, depth, features, targets, modes, votes, weights, missing, grid):
        node = self.count
        self.count += 1
        row = len(self.rows)
        self.rows.append(None)
        r = self.random
        if depth == 0 or (node > 0 and r.rand() < 0.15):
            self.rows[row] = (tree, node, 0, "LEAF", 0.0, 0, 0, 0)
            chosen = range(targets) if votes == "all" else [tree % targets] if votes == "turns" else [0]
            for target in chosen:
                self.votes.append((tree, node, target, float(F(r.uniform(*weights)))))
            return node
        value = float(F(r.randint(-grid, grid) if grid else r.randn()))
        feature, mode, track = r.randint(features), modes[r.randint(len(modes))], int(missing and r.rand() < 0.5)
        rest = (depth - 1, features, targets, modes, votes, weights, missing, grid)
        yes, no = self.grow(tree, *rest), self.grow(tree, *rest)
        self.rows[row] = (tree, node, int(feature), mode, value, yes, no, track)
        return node

    def attrs(self, stem, tensors=False):
        columns = list(zip(*self.rows))
        names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                 "missing_value_tracks_true")
        out = {"nodes_" + n: list(c) for n, c in zip(names, columns)}
        trees, nodes, ids, weights = map(list, zip(*self.votes))
        out.update({stem + "_treeids": trees, stem + "_nodeids": nodes, stem + "_ids": ids, stem + "_weights": weights})
        if tensors:
            for name in ("nodes_values", stem + "_weights"):
                values = out.pop(name)
                out[name + "_as_tensor"] = helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values)
        return out

    def newest(self, dtype=TensorProto.FLOAT):
        """The attributes of TreeEnsemble; every leaf has one vote."""
        branches = [r for r in self.rows if r[3] != "LEAF"]
        at = {(r[0], r[1]): i for i, r in enumerate(branches)}
        leaf = {(v[0], v[1]): i for i, v in enumerate(self.votes)}
        modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]

        def child(row, column):
            key = (row[0], row[column])
            return (leaf[key], 1) if key in leaf else (at[key], 0)

        roots = [i for i, r in enumerate(branches) if r[1] == 0]
        yes, no = [child(r, 5) for r in branches], [child(r, 6) for r in branches]
        floats = lambda n, v: helper.make_tensor(n, dtype, [len(v)], v)
        return dict(
            tree_roots=roots, nodes_featureids=[r[2] for r in branches],
            nodes_modes=helper.make_tensor("modes", TensorProto.UINT8, [len(branches)],
                                           [modes.index(r[3]) for r in branches]),
            nodes_splits=floats("splits", [r[4] for r in branches]),
            nodes_truenodeids=[y[0] for y in yes], nodes_trueleafs=[y[1] for y in yes],
            nodes_falsenodeids=[n[0] for n in no], nodes_falseleafs=[n[1] for n in no],
            nodes_missing_value_tracks_true=[r[7] for r in branches],
            leaf_targetids=[v[2] for v in self.votes], leaf_weights=floats("weights", [v[3] for v in self.votes]))

    def scores(self, x, targets):
        """Sums of votes: an independent walk for what the peer lacks."""
        compare = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal,
                   "BRANCH_GT": np.greater, "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal}
        nodes = {(r[0], r[1]): r for r in self.rows}
        out = np.zeros((len(x), targets))
        for i, row in enumerate(x):
            for tree in sorted({r[0] for r in self.rows}):
                node = nodes[tree, 0]
                while node[3] != "LEAF":
                    v = float(row[node[2]])
                    yes = compare[node[3]](v, node[4]) or (np.isnan(v) and node[7])
                    node = nodes[tree, node[5] if yes else node[6]]
                for t, n, target, weight in self.votes:
                    if (t, n) == (tree, node[1]):
                        out[i, target] += weight
        return out


ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def data(random, rows, columns, nan=False, grid=None):
    x = (random.randint(-grid, grid, (rows, columns)) if grid else random.randn(rows, columns)).astype(F)
    if nan:
        x[random.rand(rows, columns) < 0.2] = np.nan
    return x


def trees():
    for agg in ("SUM", "AVERAGE", "MIN", "MAX"):
        r = rng("regressor" + agg)
        forest = Forest(r, 5, 3, 4, 1)
        yield one("TreeEnsembleRegressor", agg.lower(), {"X": data(r, 11, 4)}, ["Y"], 3, n_targets=1,
                  aggregate_function=agg, base_values=[0.25], **forest.attrs("target"))
        forest = Forest(r, 4, 3, 4, 3, votes="all")
        yield one("TreeEnsembleRegressor", agg.lower() + "_3_targets", {"X": data(r, 9, 4)}, ["Y"], 1, n_targets=3,
                  aggregate_function=agg, base_values=[0.25, -1.0, 2.0], **forest.attrs("target"))
    for name, dtype in NUMBERS.items():
        r = rng("types" + name)
        x = data(r, 10, 4, grid=4).astype(dtype)
        forest = Forest(r, 3, 3, 4, 2, ALL_MODES, "all", grid=4)
        peer = dtype in (np.float32, np.float64)
        yield one("TreeEnsembleRegressor", "modes_" + name, {"X": x}, ["Y"], 3, n_targets=2, expected=None if peer else {
            "Y": forest.scores(x, 2).astype(F)}, **forest.attrs("target"))
        yield one("TreeEnsembleClassifier", "modes_" + name, {"X": x}, ["Y", "Z"], 3, classlabels_int64s=[3, 1, 2],
                  **Forest(r, 3, 3, 4, 3, ALL_MODES, "all", grid=4).attrs("class"))
    r = rng("doubles")
    x = r.randn(10, 4)
    yield one("TreeEnsembleRegressor", "tensors", {"X": x}, ["Y"], 3, n_targets=2,
              **Forest(r, 3, 3, 4, 2, ALL_MODES, "all").attrs("target", tensors=True))
    yield one("TreeEnsembleClassifier", "tensors", {"X": x}, ["Y", "Z"], 3, classlabels_strings=["a", "b", "c"],
              **Forest(r, 3, 3, 4, 3, ALL_MODES, "all").attrs("class", tensors=True))
    r = rng("missing")
    yield one("TreeEnsembleRegressor", "missing_values", {"X": data(r, 24, 4, nan=True, grid=3)}, ["Y"], 3, n_targets=1,
              **Forest(r, 4, 4, 4, 1, ALL_MODES, missing=True, grid=3).attrs("target"))
    r = rng("many trees")
    yield one("TreeEnsembleRegressor", "many_trees", {"X": data(r, 1, 4)}, ["Y"], 3, n_targets=1,
              **Forest(r, 70, 1, 4, 1).attrs("target"))
    for post in POSTS:
        weights = (0.05, 0.3) if post == "PROBIT" else (-1, 1)
        r = rng("post" + post)
        forest = Forest(r, 3, 2, 3, 3, votes="all", weights=weights)
        x = data(r, 7, 3)
        yield one("TreeEnsembleClassifier", "post_" + post.lower(), {"X": x}, ["Y", "Z"], 3, post_transform=post,
                  classlabels_int64s=[10, 20, 30], **forest.attrs("class"))
        yield one("TreeEnsembleRegressor", "post_" + post.lower(), {"X": x}, ["Y"], 3, post_transform=post, n_targets=3,
                  **forest.attrs("target"))
        if post == "PROBIT":
            continue  # the peer writes one of the two scores of a binary model
        for sign, weights in (("positive", (0.05, 0.4)), ("mixed", (-1, 1))):
            yield one("TreeEnsembleClassifier", f"binary_{sign}_{post.lower()}", {"X": x}, ["Y", "Z"], 3,
                      post_transform=post, classlabels_int64s=[5, 7],
                      **Forest(r, 3, 2, 3, 1, weights=weights).attrs("class"))
    r = rng("base")
    x = data(r, 7, 3)
    yield one("TreeEnsembleClassifier", "binary_base", {"X": x}, ["Y", "Z"], 3, post_transform="LOGISTIC",
              classlabels_strings=["no", "yes"], base_values=[-0.3], **Forest(r, 3, 2, 3, 1).attrs("class"))
    yield one("TreeEnsembleClassifier", "base_3_classes", {"X": x}, ["Y", "Z"], 1, post_transform="SOFTMAX",
              classlabels_strings=["a", "b", "c"], base_values=[0.1, 0.2, 0.3],
              **Forest(r, 6, 2, 3, 3, votes="turns").attrs("class"))
    forest = Forest(r, 2, 2, 3, 3, votes="all")
    score = forest.scores(x[:1], 3)
    yield one("TreeEnsembleClassifier", "vector", {"X": x[0]}, ["Y", "Z"], 1, classlabels_int64s=[4, 5, 6], expected={
        "Y": 4 + np.argmax(score, 1), "Z": score.astype(F)}, **forest.attrs("class"))
    # The standard's transform of one target, which ONNX Runtime leaves out.
    forest = Forest(r, 3, 2, 3, 1)
    score = forest.scores(x, 1)
    yield one("TreeEnsembleRegressor", "logistic_1_target", {"X": x}, ["Y"], 3, post_transform="LOGISTIC", n_targets=1,
              expected={"Y": (1 / (1 + np.exp(-score))).astype(F)}, **forest.attrs("target"))


def newest_trees():
    for name, dtype, proto in (("float", np.float32, TensorProto.FLOAT), ("double", np.float64, TensorProto.DOUBLE)):
        for agg, word in enumerate(("average", "sum", "min", "max")):
            r = rng("newest" + name + word)
            yield one("TreeEnsemble", f"{word}_{name}", {"X": data(r, 12, 4, nan=True, grid=3).astype(dtype)}, ["Y"], 5,
                      n_targets=2, aggregate_function=agg, **Forest(
                          r, 4, 3, 4, 2, ALL_MODES, "turns", missing=True, grid=3).newest(proto))
    r = rng("newest half")
    forest, x = Forest(r, 3, 3, 4, 2, ALL_MODES, "turns", grid=3), data(r, 12, 4, grid=3).astype(np.float16)
    for i, vote in enumerate(forest.votes):
        forest.votes[i] = (*vote[:3], float(np.float16(vote[3])))
    yield one("TreeEnsemble", "float16", {"X": x}, ["Y"], 5, n_targets=2,
              expected={"Y": forest.scores(x, 2).astype(np.float16)}, **forest.newest(TensorProto.FLOAT16))
    r = rng("softmax")
    # ONNX Runtime takes the standard's 1, softmax, for logistic.
    forest, x = Forest(r, 6, 2, 4, 3, votes="turns"), data(r, 5, 4)
    grown = np.exp(forest.scores(x, 3))
    yield one("TreeEnsemble", "softmax", {"X": x}, ["Y"], 5, n_targets=3, post_transform=1,
              expected={"Y": (grown / grown.sum(1, keepdims=True)).astype(F)}, **forest.newest())
    uint8 = lambda values: helper.make_tensor("modes", TensorProto.UINT8, [len(values)], values)
    floats = lambda values: helper.make_tensor("values", TensorProto.FLOAT, [len(values)], values)
    yield one("TreeEnsemble", "members", {"X": np.array([[1.2], [3.4], [-0.12], [NAN], [12], [7]], F)}, ["Y"], 5,
              n_targets=4, aggregate_function=1, membership_values=floats([1.2, 3.7, 8, 9, NAN, 12, 7, NAN]),
              tree_roots=[0], nodes_modes=uint8([0, 6, 6]), nodes_featureids=[0, 0, 0],
              nodes_splits=floats([11, 232344.0, NAN]), nodes_trueleafs=[0, 1, 1], nodes_truenodeids=[1, 0, 1],
              nodes_falseleafs=[1, 0, 1], nodes_falsenodeids=[2, 2, 3], leaf_targetids=[0, 1, 2, 3],
              leaf_weights=floats([1, 10, 1000, 100]))
    yield one("TreeEnsemble", "one_leaf", {"X": np.ones((3, 2), F)}, ["Y"], 5, n_targets=1, tree_roots=[0],
              nodes_modes=uint8([0]), nodes_featureids=[0], nodes_splits=floats([0]), nodes_trueleafs=[1],
              nodes_truenodeids=[0], nodes_falseleafs=[1], nodes_falsenodeids=[0], leaf_targetids=[0],
              leaf_weights=floats([2.5]))


# ------------------------------------------------------------------ linear models, support vectors
def linear():
    r = rng("linear")
    for name, dtype in NUMBERS.items():
        x = data(r, 5, 3, grid=5).astype(dtype)
        if dtype == np.float32:
            yield one("LinearRegressor", name, {"X": x}, ["Y"], coefficients=[0.5, -1.0, 2.0], intercepts=[0.25])
        else:  # the peer takes floats alone
            y = x.astype(np.float64) @ np.array([0.5, -1.0, 2.0]) + 0.25
            yield one("LinearRegressor", name, {"X": x}, ["Y"], coefficients=[0.5, -1.0, 2.0], intercepts=[0.25],
                      expected={"Y": y.reshape(-1, 1).astype(F)})
        yield one("LinearClassifier", name, {"X": x}, ["Y", "Z"], coefficients=[0.5, -1, 2, 0.1, 0.2, 0.3, -1, 1, -1.0],
                  intercepts=[0.25, 0.0, -0.5], classlabels_ints=[7, 8, 9], post_transform="SOFTMAX")
    x = data(r, 6, 3)
    for post in POSTS:
        scale = 0.1 if post == "PROBIT" else 1.0
        attrs = dict(coefficients=[scale * c for c in (0.5, -1.0, 2.0, 0.1, 0.2, 0.3)], intercepts=[0.5, 0.4])
        yield one("LinearRegressor", post.lower(), {"X": x}, ["Y"], targets=2, post_transform=post, **attrs)
        yield one("LinearClassifier", post.lower(), {"X": x}, ["Y", "Z"], post_transform=post,
                  classlabels_strings=["no", "yes"], **attrs)
        if post != "PROBIT":
            yield one("LinearClassifier", "one_row_" + post.lower(), {"X": x}, ["Y", "Z"], coefficients=[0.5, -1.0, 2.0],
                      intercepts=[0.1], classlabels_ints=[4, 2], post_transform=post)
    yield one("LinearRegressor", "no_intercepts", {"X": x}, ["Y"], targets=2, coefficients=[0.5, -1.0, 2.0, 1, 2, 3.0])
    yield one("LinearRegressor", "vector", {"X": x[0]}, ["Y"], coefficients=[0.5, -1.0, 2.0], intercepts=[0.1])
    yield one("LinearRegressor", "logistic_1_target", {"X": x}, ["Y"], coefficients=[0.5, -1.0, 2.0], intercepts=[0.1],
              post_transform="LOGISTIC", expected={"Y": (1 / (1 + np.exp(-(x.astype(np.float64) @ np.array(
                  [0.5, -1.0, 2.0]) + 0.1)))).reshape(-1, 1).astype(F)})


def support_vectors():
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        r = rng("svm" + kernel)
        x, params = data(r, 6, 3), [0.4, 0.3, 3.0]
        listed = lambda *shape: [float(F(v)) for v in r.randn(*shape).reshape(-1)]
        yield one("SVMRegressor", kernel.lower(), {"X": x}, ["Y"], kernel_type=kernel, kernel_params=params,
                  n_supports=4, support_vectors=listed(4, 3), coefficients=listed(4), rho=[0.2])
        for name, classes in (("2_classes", 2), ("3_classes", 3)):
            pairs, vectors = classes * (classes - 1) // 2, [2] * classes
            attrs = dict(kernel_type=kernel, kernel_params=params, vectors_per_class=vectors, rho=listed(pairs),
                         support_vectors=listed(2 * classes, 3), coefficients=listed(classes - 1, 2 * classes))
            yield one("SVMClassifier", f"{kernel.lower()}_{name}", {"X": x}, ["Y", "Z"],
                      classlabels_ints=list(range(5, 5 + classes)), **attrs)
            yield one("SVMClassifier", f"{kernel.lower()}_{name}_probabilities", {"X": x}, ["Y", "Z"],
                      classlabels_strings=list("abc")[:classes], prob_a=[-1.5] * pairs, prob_b=[0.1] * pairs, **attrs)
    r = rng("svm more")
    listed = lambda *shape: [float(F(v)) for v in r.randn(*shape).reshape(-1)]
    x = data(r, 6, 3)
    yield one("SVMRegressor", "one_class", {"X": x}, ["Y"], kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0], one_class=1,
              n_supports=4, support_vectors=listed(4, 3), coefficients=listed(4), rho=[-0.1])
    yield one("SVMRegressor", "no_vectors", {"X": x}, ["Y"], n_supports=0, coefficients=listed(3), rho=[-0.1],
              kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
    coefficients = listed(3, 3)
    yield one("SVMClassifier", "no_vectors", {"X": x}, ["Y", "Z"], coefficients=coefficients, rho=[0.3],
              classlabels_ints=[1, 2, 3], post_transform="SOFTMAX", kernel_params=[0.0, 0.0, 0.0])
    attrs = dict(kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0], vectors_per_class=[2, 1, 2], rho=listed(3),
                 support_vectors=listed(5, 3), coefficients=listed(2, 5))
    for name, dtype in NUMBERS.items():
        yield one("SVMClassifier", name, {"X": data(r, 4, 3, grid=3).astype(dtype)}, ["Y", "Z"],
                  classlabels_ints=[1, 2, 3], post_transform="LOGISTIC", **attrs)


# ------------------------------------------------------------------ preprocessing
def preprocessing():
    r = rng("preprocessing")
    for name, dtype in NUMBERS.items():
        x = data(r, 4, 3, grid=4).astype(dtype)
        real = dtype in (np.float32, np.float64)
        for norm in ("MAX", "L1", "L2"):
            yield one("Normalizer", f"{norm.lower()}_{name}", {"X": np.vstack([x, x[:1] * 0])}, ["Y"], norm=norm)
        yield one("Scaler", name, {"X": x}, ["Y"], offset=[0.5, -1.0, 2.0], scale=[2.0, 0.25, -3.0])
        yield one("Scaler", "one_" + name, {"X": x}, ["Y"], offset=[0.5], scale=[2.0])
        peer = dtype == np.float32
        yield one("Binarizer", name, {"X": x}, ["Y"], threshold=0.5,
                  expected=None if peer else {"Y": (x > 0.5).astype(dtype)})
        yield one("FeatureVectorizer", name, {"A": x, "B": x[:, :1], "C": x[:, 1:]}, ["Y"], inputdimensions=[3, 1, 2])
        filled = dict(imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=1.0) if real else dict(
            imputed_value_int64s=[7, 8, 9], replaced_value_int64=1)
        y = np.where(x == 1, np.array([7, 8, 9]), x).astype(dtype)
        yield one("Imputer", name, {"X": x}, ["Y"], expected=None if name in ("float", "int64") else {"Y": y}, **filled)
        yield one("ArrayFeatureExtractor", name, {"X": x, "I": np.array([2, 0, 2])}, ["Y"])
        hot = (x.astype(np.int64)[..., None] == np.array([-1, 3, 0, 2])).astype(F)
        yield one("OneHotEncoder", name, {"X": x}, ["Y"], cats_int64s=[-1, 3, 0, 2],
                  expected={"Y": hot} if name == "int32" else None)
    x = data(r, 5, 3)
    x[1, 1] = x[2, 0] = np.nan
    yield one("Imputer", "nan", {"X": x}, ["Y"], imputed_value_floats=[5.0], replaced_value_float=NAN)
    yield one("Imputer", "nan_features", {"X": x}, ["Y"], imputed_value_floats=[5.0, 6.0, 7.0], replaced_value_float=NAN)
    yield one("Normalizer", "vector", {"X": x[0]}, ["Y"], norm="L2")
    yield one("FeatureVectorizer", "cut_and_filled", {"A": x[:, :1] * 0, "B": np.abs(x[3:, :2])[:1].repeat(5, 0)}, ["Y"],
              inputdimensions=[3, 1])
    yield one("FeatureVectorizer", "vectors", {"A": x[0], "B": x[3, :2]}, ["Y"], inputdimensions=[3, 2])
    words = texts("red", "green", "blue", "red")
    yield one("ArrayFeatureExtractor", "strings", {"X": words.reshape(2, 2), "I": np.array([[1]])}, ["Y"])
    yield one("ArrayFeatureExtractor", "classes", {"X": words, "I": np.array([3, 1, 1, 2, 0])}, ["Y"])
    yield one("OneHotEncoder", "strings", {"X": words.reshape(2, 2)}, ["Y"], cats_strings=["blue", "red"])
    yield one("OneHotEncoder", "strict", {"X": words}, ["Y"], cats_strings=["blue", "red", "green"], zeros=0)
    yield one("OneHotEncoder", "fractions", {"X": np.array([0.7, -0.7, 1.5, 2.9], F)}, ["Y"], cats_int64s=[0, 1, 2])


# ------------------------------------------------------------------ labels and maps
def labels():
    words, numbers = texts("b", "a", "", "c", "b"), np.array([2, 0, 7, -1, 1])
    reals = np.array([1.5, -0.0, NAN, 2.0, 0.0], F)
    yield one("LabelEncoder", "1_strings", {"X": words}, ["Y"], 1, classes_strings=["a", "b", "d"], default_int64=-5)
    yield one("LabelEncoder", "1_integers", {"X": numbers}, ["Y"], 1, classes_strings=["a", "b", "d"])
    keys = {"strings": ["a", "b", "d"], "int64s": [0, 2, 9], "floats": [1.5, 0.0, 3.0]}
    values = {"strings": ["x", "y", "z"], "int64s": [10, 20, 30], "floats": [0.5, 1.25, -2.0]}
    given = {"strings": words, "int64s": numbers, "floats": reals}
    for k in keys:
        for v in values:
            # The peer's version 2 lacks pairs of one type but strings, as its version 4 does not.
            yield one("LabelEncoder", f"2_{k}_{v}", {"X": given[k].reshape(5, 1)}, ["Y"], 4 if k == v else 2,
                      **{"keys_" + k: keys[k], "values_" + v: values[v]})
    yield one("LabelEncoder", "4_nan", {"X": reals}, ["Y"], 4, keys_floats=[NAN, 2.0], values_strings=["none", "two"],
              default_string="other")
    tensor = lambda dtype, v: helper.make_tensor("t", dtype, [len(v)], v)
    double, i16, i32, text = TensorProto.DOUBLE, TensorProto.INT16, TensorProto.INT32, TensorProto.STRING
    yield one("LabelEncoder", "4_doubles", {"X": np.array([0.1, 2.5, NAN])}, ["Y"], 4, keys_tensor=tensor(
        double, [NAN, 0.1]), values_tensor=tensor(double, [9.0, 8.0]), default_tensor=tensor(double, [-1.0]))
    yield one("LabelEncoder", "4_double_string", {"X": np.array([0.1, 2.5, NAN])}, ["Y"], 4, keys_tensor=tensor(
        double, [NAN, 0.1]), values_tensor=tensor(text, [b"nan", b"x"]), default_tensor=tensor(text, [b"?"]))
    yield one("LabelEncoder", "4_string_int16", {"X": words}, ["Y"], 4, keys_tensor=tensor(text, [b"a", b"b"]),
              values_tensor=tensor(i16, [5, 6]), default_tensor=tensor(i16, [7]))
    yield one("LabelEncoder", "4_int32", {"X": numbers.astype(np.int32)}, ["Y"], 4, keys_tensor=tensor(i32, [0, 7]),
              values_tensor=tensor(i16, [5, 6]), default_tensor=tensor(i16, [-9]),
              expected={"Y": np.array([-9, 5, 6, -9, -9], np.int16)})
    yield one("LabelEncoder", "4_last_key", {"X": numbers}, ["Y"], 4, keys_int64s=[0, 2, 2], values_int64s=[1, 2, 3],
              expected={"Y": np.array([3, 1, -1, -1, -1])})
    yield one("CategoryMapper", "strings", {"X": words}, ["Y"], cats_strings=["a", "b"], cats_int64s=[7, 9])
    yield one("CategoryMapper", "integers", {"X": numbers}, ["Y"], cats_strings=["a", "b"], cats_int64s=[7, 2],
              default_string="none")
    scores = rng("zip").rand(3, 2).astype(F)
    yield one("ZipMap", "strings", {"X": scores}, ["Y"], classlabels_strings=["b", "a"])
    yield one("ZipMap", "integers", {"X": scores}, ["Y"], classlabels_int64s=[5, -1])
    yield one("ZipMap", "repeated_key", {"X": rng("zip").rand(2, 3).astype(F)}, ["Y"], classlabels_strings=["b", "a", "b"])
    yield one("ZipMap", "vector", {"X": scores[0]}, ["Y"], classlabels_int64s=[5, 6])
    for name, given in (("floats", {3: F(1.5), 1: F(-2.25)}), ("strings", {3: "1.5", 1: "-7"})):
        for to in ("TO_FLOAT", "TO_STRING", "TO_INT64"):
            for form in ("DENSE", "SPARSE"):
                yield one("CastMap", f"{name}_{to.lower()}_{form.lower()}", {"X": given}, ["Y"], cast_to=to,
                          map_form=form, max_map=5)
    for name, given in (("int64", {"a": 4, "c": 8}), ("float", {"a": F(4), "q": F(1)}), ("double", {"a": np.float64(4)})):
        yield one("DictVectorizer", "string_" + name, {"X": given}, ["Y"], string_vocabulary=["a", "c", "b", "z"])
    for name, given in (("string", {1: "x", 3: "y"}), ("float", {1: F(4), 9: F(1)}), ("double", {3: np.float64(4)})):
        yield one("DictVectorizer", "int64_" + name, {"X": given}, ["Y"], int64_vocabulary=[3, 2, 1])


# ------------------------------------------------------------------ exporters' layouts
def pipeline(exporter, name, nodes, inputs, outputs, ml=1, initializers=None):
    return Case(ML, "from_" + exporter, name, nodes, inputs, outputs, initializers or {}, {ML: ml})


def node(op, inputs, outputs, domain=ML, **attrs):
    return helper.make_node(op, inputs, outputs, domain=domain, **attrs)


def skl2onnx():
    r = rng("skl2onnx")
    x = data(r, 4, 3)
    scaled = node("Scaler", ["X"], ["scaled"], offset=[0.1, -0.2, 0.3], scale=[1.5, 0.5, 2.0])
    row = [0.7, -1.1, 0.4]
    # LogisticRegression: both classes' rows, labels and normalised probabilities, maps at the end.
    yield pipeline("skl2onnx", "scaler_logistic_regression", [
        scaled,
        node("LinearClassifier", ["scaled"], ["label", "scores"], coefficients=[-c for c in row] + row,
             intercepts=[-0.2, 0.2], classlabels_ints=[0, 1], multi_class=1, post_transform="LOGISTIC"),
        node("Normalizer", ["scores"], ["probabilities"], norm="L1"),
        node("Cast", ["label"], ["output_label"], domain="", to=TensorProto.INT64),
        node("ZipMap", ["probabilities"], ["output_probability"], classlabels_int64s=[0, 1]),
    ], {"X": x}, ["output_label", "output_probability"])
    yield pipeline("skl2onnx", "multinomial_strings", [
        scaled,
        node("LinearClassifier", ["scaled"], ["label", "scores"], coefficients=[float(v) for v in r.randn(9).astype(F)],
             intercepts=[0.1, 0.0, -0.1], classlabels_strings=["setosa", "versicolor", "virginica"], multi_class=1,
             post_transform="SOFTMAX"),
        node("ZipMap", ["scores"], ["output_probability"], classlabels_strings=["setosa", "versicolor", "virginica"]),
        node("Identity", ["label"], ["output_label"], domain=""),
    ], {"X": x}, ["output_label", "output_probability"])
    forest = Forest(r, 6, 3, 3, 3, votes="all", weights=(0.0, 1 / 6))
    yield pipeline("skl2onnx", "random_forest", [
        node("TreeEnsembleClassifier", ["X"], ["label", "probabilities"], classlabels_int64s=[0, 1, 2],
             post_transform="NONE", **forest.attrs("class")),
        node("Cast", ["label"], ["output_label"], domain="", to=TensorProto.INT64),
        node("ZipMap", ["probabilities"], ["output_probability"], classlabels_int64s=[0, 1, 2]),
    ], {"X": x}, ["output_label", "output_probability"])
    # Two classes: votes for the positive one alone, between 0 and 1.
    forest = Forest(r, 5, 3, 3, 1, weights=(0.0, 0.2))
    yield pipeline("skl2onnx", "random_forest_binary", [
        node("TreeEnsembleClassifier", ["X"], ["label", "probabilities"], classlabels_strings=["no", "yes"],
             post_transform="NONE", **forest.attrs("class")),
        node("ZipMap", ["probabilities"], ["output_probability"], classlabels_strings=["no", "yes"]),
    ], {"X": x}, ["label", "output_probability"])
    yield pipeline("skl2onnx", "gradient_boosting_binary", [
        node("TreeEnsembleClassifier", ["X"], ["label", "probabilities"], classlabels_int64s=[0, 1],
             post_transform="LOGISTIC", base_values=[-0.4], **Forest(r, 8, 2, 3, 1).attrs("class")),
        node("ZipMap", ["probabilities"], ["output_probability"], classlabels_int64s=[0, 1]),
    ], {"X": x}, ["label", "output_probability"])
    yield pipeline("skl2onnx", "gradient_boosting_regressor", [
        node("TreeEnsembleRegressor", ["X"], ["variable"], n_targets=1, base_values=[12.5],
             **Forest(r, 8, 3, 3, 1).attrs("target"))], {"X": x}, ["variable"])
    vectors, listed = 6, lambda *shape: [float(F(v)) for v in r.randn(*shape).reshape(-1)]
    yield pipeline("skl2onnx", "svc", [
        node("SVMClassifier", ["X"], ["label", "probabilities"], classlabels_ints=[0, 1, 2], kernel_type="RBF",
             kernel_params=[0.33, 0.0, 3.0], vectors_per_class=[2, 2, 2], support_vectors=listed(vectors, 3),
             coefficients=listed(2, vectors), rho=listed(3), prob_a=[-1.2, -0.9, -1.4], prob_b=[0.1, 0.0, -0.1],
             post_transform="NONE"),
        node("Cast", ["label"], ["output_label"], domain="", to=TensorProto.INT64),
        node("ZipMap", ["probabilities"], ["output_probability"], classlabels_int64s=[0, 1, 2]),
    ], {"X": x}, ["output_label", "output_probability"])
    words = texts("red", "blue", "green", "red").reshape(4, 1)
    holed = x.copy()
    holed[0, 1] = holed[2, 2] = np.nan
    # A ColumnTransformer: imputed and scaled numbers beside one-hot words, then a linear model.
    yield pipeline("skl2onnx", "column_transformer", [
        node("Imputer", ["numbers"], ["filled"], imputed_value_floats=[0.1, 0.2, 0.3], replaced_value_float=NAN),
        node("Scaler", ["filled"], ["scaled"], offset=[0.1, -0.2, 0.3], scale=[1.5, 0.5, 2.0]),
        node("OneHotEncoder", ["words"], ["encoded"], cats_strings=["blue", "green", "red"], zeros=1),
        node("Reshape", ["encoded", "flat"], ["columns"], domain=""),
        node("Concat", ["scaled", "columns"], ["features"], domain="", axis=1),
        node("LinearRegressor", ["features"], ["variable"], coefficients=[1.0, -2, 0.5, 3, -1, 2], intercepts=[0.5]),
    ], {"numbers": holed, "words": words}, ["variable"], initializers={"flat": np.array([-1, 3])})
    # KNeighbours and the like: positions of the best, then their labels.
    yield pipeline("skl2onnx", "classes_by_position", [
        node("ArgMax", ["X"], ["best"], domain="", axis=1, keepdims=0),
        node("ArrayFeatureExtractor", ["classes", "best"], ["row"]),
        node("Reshape", ["row", "list"], ["label"], domain=""),
    ], {"X": x}, ["label"], initializers={"classes": texts("a", "b", "c"), "list": np.array([-1])})
    yield pipeline("skl2onnx", "label_encoder", [
        node("LabelEncoder", ["X"], ["variable"], keys_strings=["blue", "green", "red"], values_int64s=[0, 1, 2])],
        {"X": words}, ["variable"], ml=2)


def xgboost():
    r = rng("xgboost")
    x = data(r, 5, 4, nan=True)
    modes, strict = ("BRANCH_LT",), dict(missing=True)
    yield pipeline("onnxmltools_xgboost", "regressor", [
        node("TreeEnsembleRegressor", ["input"], ["variable"], n_targets=1, base_values=[0.5],
             **Forest(r, 8, 3, 4, 1, modes, **strict).attrs("target"))], {"input": x}, ["variable"], ml=3)
    yield pipeline("onnxmltools_xgboost", "binary", [
        node("TreeEnsembleClassifier", ["input"], ["label", "probabilities"], classlabels_int64s=[0, 1],
             post_transform="LOGISTIC", base_values=[0.1], **Forest(r, 8, 3, 4, 1, modes, **strict).attrs("class"))],
        {"input": x}, ["label", "probabilities"], ml=3)
    yield pipeline("onnxmltools_xgboost", "softprob", [
        node("TreeEnsembleClassifier", ["input"], ["label", "probabilities"], classlabels_int64s=[0, 1, 2],
             post_transform="SOFTMAX", base_values=[0.5, 0.5, 0.5],
             **Forest(r, 9, 3, 4, 3, modes, "turns", **strict).attrs("class"))],
        {"input": x}, ["label", "probabilities"], ml=3)


def lightgbm():
    r = rng("lightgbm")
    x = data(r, 5, 4, nan=True)
    yield pipeline("onnxmltools_lightgbm", "binary", [
        node("TreeEnsembleClassifier", ["input"], ["label", "probability_tensor"], classlabels_int64s=[0, 1],
             post_transform="LOGISTIC", **Forest(r, 8, 3, 4, 1, missing=True).attrs("class")),
        node("ZipMap", ["probability_tensor"], ["probabilities"], classlabels_int64s=[0, 1]),
    ], {"input": x}, ["label", "probabilities"])
    yield pipeline("onnxmltools_lightgbm", "multiclass", [
        node("TreeEnsembleClassifier", ["input"], ["label", "probability_tensor"], classlabels_int64s=[0, 1, 2],
             post_transform="SOFTMAX", **Forest(r, 9, 3, 4, 3, votes="turns", missing=True).attrs("class")),
        node("ZipMap", ["probability_tensor"], ["probabilities"], classlabels_int64s=[0, 1, 2]),
    ], {"input": x}, ["label", "probabilities"])
    # A category: one equality each, all with the same branch.
    rows = [(0, 0, 0, "BRANCH_EQ", 1.0, 4, 1, 0), (0, 1, 0, "BRANCH_EQ", 3.0, 4, 2, 0),
            (0, 2, 0, "BRANCH_EQ", 4.0, 4, 3, 0), (0, 3, 1, "BRANCH_LEQ", 0.5, 5, 6, 1), (0, 4, 1, "BRANCH_LEQ", -0.5, 7, 8, 1)]
    rows += [(0, n, 0, "LEAF", 0.0, 0, 0, 0) for n in range(5, 9)]
    forest = Forest(r, 0, 1, 1, 1)
    forest.rows, forest.votes = rows, [(0, n, 0, float(n)) for n in range(5, 9)]
    categories = np.array([[1, 0], [3, -1], [4, np.nan], [2, 0], [2, 1], [0, np.nan], [np.nan, 0]], F)
    yield pipeline("onnxmltools_lightgbm", "categories", [
        node("TreeEnsembleRegressor", ["input"], ["variable"], n_targets=1, **forest.attrs("target"))],
        {"input": categories}, ["variable"])


def cases():
    for family in (trees, newest_trees, linear, support_vectors, preprocessing, labels, skl2onnx, xgboost, lightgbm):
        yield from family()
