// SPDX-License-Identifier: Apache-2.0
//
// Support vector machines as LIBSVM has them: kernels of a row with every support vector, then one
// decision a pair of classes, then votes, or probabilities by pairwise coupling (Wu, Lin and Weng,
// "Probability estimates for multi-class classification by pairwise coupling", 2004).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/ml/ml.h"
#include "providers/cpu/kernels/ml/scores.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kBlockRows = 16;
constexpr double kLeastProbability = 1e-7;

enum class SvmKernel : uint8_t { kLinear, kPoly, kRbf, kSigmoid };

struct Svm {
  bool classifier = false, one_class = false, all_positive = true;
  SvmKernel kernel = SvmKernel::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;
  PostTransform post = PostTransform::kNone;
  int64_t vectors = 0;  // 0: linear, coefficients are one vector a score
  int64_t features = 0;
  std::vector<float> support, coefficients, rho, prob_a, prob_b;
  std::vector<int64_t> labels, begin;  // |begin|: first vector of each class, and the end
  int64_t classes() const { return static_cast<int64_t>(labels.size()); }
  int64_t pairs() const { return classes() * (classes() - 1) / 2; }
  bool probabilities() const { return !prob_a.empty() && vectors > 0; }
  // Scores a row.
  int64_t columns() const {
    if (!classifier) return 1;
    return vectors == 0 || probabilities() || classes() <= 2 ? classes() : pairs();
  }
};

std::vector<float> floats(const SnapshotNode& node, std::string_view name) {
  const auto list = node.attr_floats(name);
  return {list.begin(), list.end()};
}

Status need_at_least(std::string_view name, size_t found, int64_t needed) {
  if (static_cast<int64_t>(found) >= needed) return {};
  return attribute_error(name, "has ", found, " elements, needs ", needed);
}

Status read_kernel(const SnapshotNode& node, Svm& svm) {
  const std::string_view word = node.attr_string("kernel_type", "LINEAR");
  svm.kernel = word == "POLY"      ? SvmKernel::kPoly
               : word == "RBF"     ? SvmKernel::kRbf
               : word == "SIGMOID" ? SvmKernel::kSigmoid
                                   : SvmKernel::kLinear;
  const auto params = node.attr_floats("kernel_params");
  if (svm.kernel != SvmKernel::kLinear && svm.vectors > 0)
    PFRT_TRY(need_at_least("kernel_params", params.size(), 3));
  if (params.size() < 3) return {};
  svm.gamma = static_cast<double>(params[0]);
  svm.coef0 = static_cast<double>(params[1]);
  svm.degree = static_cast<double>(params[2]);
  return {};
}

// Sizes that the sums below rely on.
Status read_classes(const SnapshotNode& node, Svm& svm) {
  const auto labels = node.attr_ints("classlabels_ints");
  svm.labels.assign(labels.begin(), labels.end());
  svm.begin = {0};
  for (int64_t count : node.attr_ints("vectors_per_class")) {
    if (count < 0 || count > INT32_MAX || svm.begin.back() > INT32_MAX)
      return attribute_error("vectors_per_class", "has ", count);
    svm.begin.push_back(svm.begin.back() + count);
  }
  svm.vectors = svm.begin.back();
  if (svm.classes() < 1) return attribute_error("classlabels_ints", "is empty");
  if (svm.vectors == 0) return {};
  if (svm.classes() < 2) return attribute_error("classlabels_ints", "has one label; needs two");
  if (static_cast<int64_t>(svm.begin.size()) != svm.classes() + 1)
    return attribute_error("vectors_per_class", "has ", svm.begin.size() - 1, " elements for ",
                           svm.classes(), " labels");
  svm.prob_a = floats(node, "prob_a");
  svm.prob_b = floats(node, "prob_b");
  if (svm.prob_a.size() != svm.prob_b.size())
    return attribute_error("prob_b", "has ", svm.prob_b.size(), " elements, 'prob_a' has ",
                           svm.prob_a.size());
  if (!svm.prob_a.empty()) PFRT_TRY(need_at_least("prob_a", svm.prob_a.size(), svm.pairs()));
  PFRT_TRY(need_at_least("rho", svm.rho.size(), svm.pairs()));
  return need_at_least("coefficients", svm.coefficients.size(), (svm.classes() - 1) * svm.vectors);
}

template <typename T>
T product(const T* x, const float* v, int64_t n, bool distance) {
  T sum[8] = {};
  for (int64_t i = 0; i < n; ++i) {
    const T w = static_cast<T>(v[i]);
    const T d = x[i] - w;
    sum[i & 7] += distance ? d * d : x[i] * w;
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

template <typename T>
T kernel_of(const Svm& svm, const T* x, const float* vector) {
  const double s =
      static_cast<double>(product(x, vector, svm.features, svm.kernel == SvmKernel::kRbf));
  switch (svm.kernel) {
    case SvmKernel::kPoly:
      return static_cast<T>(std::pow(svm.gamma * s + svm.coef0, svm.degree));
    case SvmKernel::kRbf:
      return static_cast<T>(std::exp(-svm.gamma * s));
    case SvmKernel::kSigmoid:
      return static_cast<T>(std::tanh(svm.gamma * s + svm.coef0));
    default:
      return static_cast<T>(s);
  }
}

double weighted(const float* weights, const double* kernels, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += static_cast<double>(weights[i]) * kernels[i];
  return sum;
}

// Decisions of all pairs i < j, positive for i. There is one row of coefficients less than classes:
// those of class i against j are in row j - 1, those of j against i in row i.
void decide(const Svm& svm, const double* kernels, double* decisions, int64_t* votes) {
  int64_t pair = 0;
  for (int64_t i = 0; i < svm.classes(); ++i) {
    for (int64_t j = i + 1; j < svm.classes(); ++j, ++pair) {
      const auto at = [&](int64_t k) { return svm.begin[static_cast<size_t>(k)]; };
      const float* weights = svm.coefficients.data();
      const double sum = weighted(weights + (j - 1) * svm.vectors, kernels, at(i), at(i + 1)) +
                         weighted(weights + i * svm.vectors, kernels, at(j), at(j + 1)) +
                         static_cast<double>(svm.rho[static_cast<size_t>(pair)]);
      decisions[pair] = sum;
      ++votes[sum > 0 ? i : j];
    }
  }
}

// Probabilities p of the classes from r[i * n + j], that of i against j.
void couple(int64_t n, const std::vector<double>& r, std::vector<double>& p) {
  const auto at = [n](int64_t i, int64_t j) { return static_cast<size_t>(i * n + j); };
  const auto one = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<double> q(r.size()), qp(p.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (i == j) continue;
      q[at(i, i)] += r[at(j, i)] * r[at(j, i)];
      q[at(i, j)] = -r[at(j, i)] * r[at(i, j)];
    }
  }
  std::fill(p.begin(), p.end(), 1.0 / static_cast<double>(n));
  const double enough = 0.005 / static_cast<double>(n);
  for (int round = 0; round < 100; ++round) {
    double pqp = 0, most = 0;
    for (int64_t i = 0; i < n; ++i) {
      qp[one(i)] = 0;
      for (int64_t j = 0; j < n; ++j) qp[one(i)] += q[at(i, j)] * p[one(j)];
      pqp += p[one(i)] * qp[one(i)];
    }
    for (double v : qp) most = std::max(most, std::fabs(v - pqp));
    if (most < enough) return;
    for (int64_t i = 0; i < n; ++i) {
      const double step = (pqp - qp[one(i)]) / q[at(i, i)], grown = 1 + step;
      p[one(i)] += step;
      pqp = (pqp + step * (step * q[at(i, i)] + 2 * qp[one(i)])) / (grown * grown);
      for (int64_t j = 0; j < n; ++j) {
        qp[one(j)] = (qp[one(j)] + step * q[at(i, j)]) / grown;
        p[one(j)] /= grown;
      }
    }
  }
}

std::vector<double> class_probabilities(const Svm& svm, const double* decisions) {
  const int64_t n = svm.classes();
  std::vector<double> r(static_cast<size_t>(n * n)), p(static_cast<size_t>(n));
  size_t pair = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++pair) {
      const double x = decisions[pair] * static_cast<double>(svm.prob_a[pair]) +
                       static_cast<double>(svm.prob_b[pair]);
      const double mine =
          std::clamp(1 / (1 + std::exp(x)), kLeastProbability, 1 - kLeastProbability);
      r[static_cast<size_t>(i * n + j)] = mine;
      r[static_cast<size_t>(j * n + i)] = 1 - mine;
    }
  }
  couple(n, r, p);
  return p;
}

template <typename T>
int64_t top(const T* values, int64_t n) {
  return std::max_element(values, values + n) - values;
}

// The label of a row of kernels (or of linear scores); its scores in |z|.
int64_t classify(const Svm& svm, const double* kernels, float* z) {
  const int64_t n = svm.classes();
  if (svm.vectors == 0) {
    std::copy(kernels, kernels + n, z);
    // With two classes and no negative weights, the second wins from 0.5 on.
    const int64_t best = top(z, n);
    const bool second = n == 2 && svm.all_positive && z[best] >= 0.5f;
    transform_scores(svm.post, z, n);
    return svm.labels[static_cast<size_t>(second ? 1 : best)];
  }
  std::vector<double> decisions(static_cast<size_t>(svm.pairs()));
  std::vector<int64_t> votes(static_cast<size_t>(n));
  decide(svm, kernels, decisions.data(), votes.data());
  if (svm.probabilities()) {
    const std::vector<double> p = class_probabilities(svm, decisions.data());
    for (size_t i = 0; i < p.size(); ++i) z[i] = static_cast<float>(p[i]);
    transform_scores(svm.post, z, n);
  } else if (n == 2) {
    second_class(svm.post, svm.post == PostTransform::kNone, static_cast<float>(decisions[0]), z);
  } else {
    for (size_t i = 0; i < decisions.size(); ++i) z[i] = static_cast<float>(decisions[i]);
    transform_scores(svm.post, z, svm.pairs());
  }
  return svm.labels[static_cast<size_t>(top(votes.data(), n))];
}

float regress(const Svm& svm, const double* kernels) {
  double s = svm.vectors == 0 ? kernels[0]
                              : weighted(svm.coefficients.data(), kernels, 0, svm.vectors) +
                                    static_cast<double>(svm.rho[0]);
  if (svm.one_class) s = s > 0 ? 1 : -1;
  float y = static_cast<float>(s);
  transform_scores(svm.post, &y, 1);
  return y;
}

template <typename T>
Kernel svm_kernel(const std::shared_ptr<const Svm>& svm, const SnapshotNode& node, Rows rows) {
  // Vectors that a row is multiplied with: the model's, or the coefficients of each score.
  const int64_t vectors = svm->vectors > 0 ? svm->vectors : svm->columns();
  Kernel kernel;
  kernel.flops = 2.0 * static_cast<double>(rows.rows) * static_cast<double>(vectors) *
                 static_cast<double>(rows.columns);
  const auto doubles = static_cast<uint64_t>(kBlockRows * vectors);
  const auto row = static_cast<uint64_t>(svm->columns());
  const int64_t copied = node.input_dtype(0) == kDtypeOf<T> ? 0 : rows.columns;
  kernel.scratch_bytes =
      doubles * sizeof(double) + row * sizeof(float) + 8 +
      static_cast<uint64_t>(kBlockRows) * static_cast<uint64_t>(copied) * sizeof(T);
  kernel.run = [=, from = node.input_dtype(0), has_first = node.has_output(0),
                has_second = node.has_output(1), columns = svm->columns()](const Run& run) {
    run.parallel((rows.rows + kBlockRows - 1) / kBlockRows, [&](int64_t b, uint32_t worker) {
      const int64_t begin = b * kBlockRows, n = std::min(kBlockRows, rows.rows - begin);
      auto* kernels = run.scratch<double>(worker);
      auto* block = reinterpret_cast<T*>(kernels + kBlockRows * vectors);
      auto* z = reinterpret_cast<float*>(block + kBlockRows * copied);
      const T* x = read_block(from, run.input(0), begin * rows.columns, n * rows.columns, block);
      const float* support = svm->vectors > 0 ? svm->support.data() : svm->coefficients.data();
      for (int64_t v = 0; v < vectors; ++v) {
        if (v % 1024 == 1023 && run.stopped()) return;
        for (int64_t r = 0; r < n; ++r) {
          double k = static_cast<double>(
              kernel_of(*svm, x + r * rows.columns, support + v * svm->features));
          if (svm->vectors == 0) k += static_cast<double>(svm->rho[0]);
          kernels[r * vectors + v] = k;
        }
      }
      for (int64_t r = 0; r < n; ++r) {
        const double* row_kernels = kernels + r * vectors;
        if (!svm->classifier) {
          run.output<float>(0)[begin + r] = regress(*svm, row_kernels);
          continue;
        }
        const int64_t label = classify(*svm, row_kernels, z);
        if (has_first) run.output<int64_t>(0)[begin + r] = label;
        if (has_second) std::copy(z, z + columns, run.output<float>(1) + (begin + r) * columns);
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Prepared> prepare_svm(const SnapshotNode& node) {
  auto svm = std::make_shared<Svm>();
  svm->classifier = node.op() == "SVMClassifier";
  svm->one_class = node.attr_int("one_class", 0) != 0;
  PFRT_ASSIGN(svm->post, post_transform_of(node));
  svm->coefficients = floats(node, "coefficients");
  svm->rho = floats(node, "rho");
  svm->support = floats(node, "support_vectors");
  if (svm->coefficients.empty()) return attribute_error("coefficients", "is absent or empty");
  PFRT_TRY(need_at_least("rho", svm->rho.size(), 1));
  if (svm->classifier) {
    PFRT_TRY(read_classes(node, *svm));
  } else {
    svm->vectors = std::max<int64_t>(node.attr_int("n_supports", 0), 0);
    PFRT_TRY(need_at_least("coefficients", svm->coefficients.size(), svm->vectors));
  }
  PFRT_TRY(read_kernel(node, *svm));
  const int64_t rows = svm->vectors > 0 ? svm->vectors : svm->columns();
  const std::vector<float>& matrix = svm->vectors > 0 ? svm->support : svm->coefficients;
  const auto size = static_cast<int64_t>(matrix.size());
  if (size == 0 || size % rows != 0)
    return attribute_error(svm->vectors > 0 ? "support_vectors" : "coefficients", "has ", size,
                           " elements for ", rows, " vectors");
  svm->features = size / rows;
  if (svm->vectors == 0) svm->kernel = SvmKernel::kLinear;
  svm->all_positive = std::all_of(svm->coefficients.begin(), svm->coefficients.end(),
                                  [](float c) { return c >= 0; });
  return Prepared(std::move(svm));
}

Result<Kernel> make_svm(const KernelRequest& node) {
  auto svm = std::static_pointer_cast<const Svm>(node.prepared);
  PFRT_ASSIGN(const Rows rows, rows_of(node));
  if (rows.columns != svm->features)
    return kernel_error("the model has ", svm->features, " features, input 0 has ", rows.columns,
                        " columns");
  const std::vector<int64_t> scores{rows.rows, svm->columns()};
  if (svm->classifier) {
    if (node.has_output(0)) PFRT_TRY(need_output_dims(node, 0, std::vector{rows.rows}));
    if (node.has_output(1)) PFRT_TRY(need_output_dims(node, 1, scores));
  } else {
    PFRT_TRY(need_output_dims(node, 0, scores));
  }
  return node.input_dtype(0) == PFRT_DTYPE_FLOAT64 ? svm_kernel<double>(std::move(svm), node, rows)
                                                   : svm_kernel<float>(std::move(svm), node, rows);
}

}  // namespace pfrt::cpu
