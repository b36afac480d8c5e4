// SPDX-License-Identifier: Apache-2.0
//
// Lists the element types, except strings, that the standard's newest versions (opset 28) allow for
// the input that selects a row, and checks that some row of each operator takes them. QLinearMatMul
// of 8-bit floats is missing here: it becomes other operators before it gets to a provider.
#include <gtest/gtest.h>

#include <sstream>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::test {
namespace {

using cpu::kBool, cpu::kElements, cpu::kFloat8, cpu::kFloats, cpu::kInts, cpu::kMovable;
using cpu::kNumbers, cpu::kSubByte, cpu::kSignedInts, cpu::kUnsignedInts;
using cpu::Types;

struct Allowed {
  Types types;
  std::string_view operators;
};

const Allowed kAllowed[] = {
    {kFloats,
     "Acos Acosh AffineGrid Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Conv "
     "ConvTranspose Cos Cosh Elu Erf Exp Floor GRU Gelu GlobalAveragePool GlobalLpPool "
     "GlobalMaxPool GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization LRN "
     "LSTM LayerNormalization LeakyRelu Log LogSoftmax LpNormalization LpPool MaxUnpool Mean "
     "MeanVarianceNormalization Mish RMSNormalization RNN Reciprocal Round Selu Sigmoid Sin Sinh "
     "Softmax Softplus Softsign Sqrt Sum Swish Tan Tanh ThresholdedRelu"},
    {kNumbers,
     "Abs Add ArgMax ArgMin Clip Div Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Sign "
     "Sub TopK"},
    {kNumbers | kBool | Types{PFRT_DTYPE_COMPLEX128, PFRT_DTYPE_COMPLEX64},
     "Concat DepthToSpace Expand Gather GatherElements GatherND GridSample NonZero Resize "
     "ScatterElements ScatterND Slice SpaceToDepth Split Tile Trilu Where"},
    {kFloats | Types{PFRT_DTYPE_INT32, PFRT_DTYPE_INT64, PFRT_DTYPE_UINT32, PFRT_DTYPE_UINT64},
     "CumProd CumSum Gemm MatMul PRelu ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean "
     "ReduceProd ReduceSum ReduceSumSquare"},
    {kElements, "BitCast Flatten Identity Pad Reshape Shape Size Squeeze Transpose Unsqueeze"},
    {kBool, "And Not Or Xor"},
    {kInts, "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor"},
    {kInts | kBool |
         Types{PFRT_DTYPE_COMPLEX128, PFRT_DTYPE_COMPLEX64, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT32,
               PFRT_DTYPE_FLOAT16},
     "Compress OneHot ReverseSequence Unique"},
    {Types{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8}, "ConvInteger MatMulInteger QLinearConv"},
    {kFloats | kFloat8, "Dropout IsInf IsNaN"},
    {kInts | Types{PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16}, "Einsum Shrink"},
    {kNumbers | kBool, "Equal EyeLike"},
    {kFloats | kSignedInts, "Neg Relu"},
    {kFloats | kBool |
         Types{PFRT_DTYPE_INT32, PFRT_DTYPE_INT64, PFRT_DTYPE_INT8, PFRT_DTYPE_UINT32,
               PFRT_DTYPE_UINT64, PFRT_DTYPE_UINT8},
     "ReduceMax ReduceMin"},
    {kNumbers | kFloat8 | kSubByte | kBool | Types{PFRT_DTYPE_FLOAT8E8M0}, "Cast"},
    {Types{PFRT_DTYPE_INT64}, "ConstantOfShape"},
    {kFloat8 | kSubByte |
         Types{PFRT_DTYPE_INT16, PFRT_DTYPE_INT32, PFRT_DTYPE_INT8, PFRT_DTYPE_UINT16,
               PFRT_DTYPE_UINT8},
     "DequantizeLinear"},
    {Types{PFRT_DTYPE_FLOAT32}, "DynamicQuantizeLinear"},
    {kFloats | Types{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8}, "MaxPool"},
    {kFloats | Types{PFRT_DTYPE_INT32, PFRT_DTYPE_INT64}, "Pow"},
    {Types{PFRT_DTYPE_BFLOAT16, PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_INT32},
     "QuantizeLinear"},
    {kFloats | Types{PFRT_DTYPE_INT16, PFRT_DTYPE_INT32, PFRT_DTYPE_INT64}, "Range"},
};

TEST(Kernels, take_every_type_that_the_standard_allows) {
  int checked = 0;
  for (const Allowed& allowed : kAllowed) {
    std::istringstream names{std::string(allowed.operators)};
    for (std::string op; names >> op; ++checked) {
      Types taken;
      for (const auto family : cpu::kernels())
        for (const cpu::KernelRow& row : family)
          if (row.domain.empty() && row.op == op) taken = taken | row.types;
      for (pfrt_dtype dtype = 1; dtype_known(dtype); ++dtype)
        EXPECT_TRUE(taken.has(dtype) || !allowed.types.has(dtype))
            << op << " does not take " << dtype_name(dtype);
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace pfrt::test
