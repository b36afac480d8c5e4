// SPDX-License-Identifier: Apache-2.0
//
// A provider is a table of C functions. They take flat structs that live during the call, report
// errors to the host's sink, and let no exception out. Functions return a code: 0 is success, and
// sink->fail returns the code it is given.
#include "providers/null/null.h"

#include <new>

#include "core/base/status.h"
#include "providers/kit/node.h"

namespace pfrt::null_provider {
namespace {

constexpr std::string_view kReason = "the null provider runs nothing: it is the skeleton to copy";

// An opened device: handles, caches, what was measured of it. The host sees a pfrt_provider*.
struct Provider {};

// Opens one of the words of |devices|. Options come without prefix; one that is not known is an
// error, so that a misspelt option never goes unnoticed.
pfrt_code open(pfrt_string device, const pfrt_key_value* options, size_t option_count,
               const pfrt_sink* sink, pfrt_provider** out_provider) {
  *out_provider = nullptr;
  if (view(device) != "null")
    return sink->fail(sink, PFRT_CODE_NOT_FOUND, PFRT_NO_INDEX,
                      to_c("the null provider opens 'null' alone"));
  if (option_count > 0) {
    const std::string text =
        message("the null provider has no option '", options[0].key, "': it has none");
    return sink->fail(sink, PFRT_CODE_INVALID_ARGUMENT, PFRT_NO_INDEX, to_c(text));
  }
  auto* provider = new (std::nothrow) Provider;
  if (provider == nullptr)
    return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX,
                      to_c("no memory for the null provider"));
  *out_provider = reinterpret_cast<pfrt_provider*>(provider);
  return PFRT_CODE_OK;
}

// Called once, when nothing compiled is left.
void close(pfrt_provider* provider) { delete reinterpret_cast<Provider*>(provider); }

// Answers for each node of the snapshot: accept, with estimates of time and memory, or refuse, with
// a reason that a user can act on. Pure and repeatable: the host asks again after it has rewritten
// the graph. A provider looks at the node with SnapshotNode: operator, types, dimensions (negative
// where symbolic), constants.
pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < snapshot->node_count; ++n) claims->refuse(claims, n, to_c(kReason));
  return PFRT_CODE_OK;
}

// Makes an executable of a set of nodes that claim accepted; dimensions may be symbolic still. The
// region's snapshot lives only during the call, the data of its constants as long as the executable
// (SnapshotCopy keeps the rest). Refusing a node here, with its index, makes the host give it to
// the next provider. Long work asks sink->stop.
pfrt_code compile_one(pfrt_provider*, const pfrt_region* region, const pfrt_sink* sink,
                      pfrt_executable** out_executable) {
  *out_executable = nullptr;
  const uint32_t node = region->node_count > 0 ? region->nodes[0] : PFRT_NO_INDEX;
  return sink->fail(sink, PFRT_CODE_UNSUPPORTED_OPERATOR, node, to_c(kReason));
}

// Deletes what compile made.
void release_executable(pfrt_executable*) {}

// All regions of a session come in one call, for devices that are divided among them.
pfrt_code compile(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                  size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                  size_t* out_region) {
  return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables, out_region,
                           compile_one, release_executable);
}

// Makes a program for one set of dimensions: buffers, and steps in an order that runs. The host
// plans the memory of all buffers, calls each step's run function with it, and keeps programs by
// input signature. Memory that the program points to belongs to the provider until release_program.
pfrt_code specialise(pfrt_executable*, const pfrt_shapes*, const pfrt_sink* sink, pfrt_program*) {
  return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX, to_c(kReason));
}

// Deletes what specialise made.
void release_program(pfrt_executable*, pfrt_program*) {}

// Member by member: what a later header adds stays zero, which is "not there".
constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof(pfrt_provider_table);
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"null", 4};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = compile;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  // Optional, each with its feature bit: supports (whether one operator and its tail can run, asked
  // before nodes are fused), constants (in the provider's own layout, packed by the host once),
  // kernel_count and kernel_at (what `pfrt providers --kernels` prints), option_count and option_at
  // (what open takes).
  return table;
}();

}  // namespace

const pfrt_provider_table& provider_table() { return kTable; }

}  // namespace pfrt::null_provider
