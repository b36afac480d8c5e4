// SPDX-License-Identifier: Apache-2.0
//
// The C table and what every wrapper needs around it: checked calls, text, reference-counted
// handles. Thread-safe; one Handle object is used by one thread at a time, as a shared_ptr is.
#pragma once

#include <pyflame_rt/pyflame_rt.h>

#include <pyflame_rt/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace detail {

inline pfrt_string text(std::string_view s) noexcept { return pfrt_string{s.data(), s.size()}; }
inline std::string str(pfrt_string s) {
  return s.size == 0 ? std::string() : std::string(s.data, s.size);
}

// The tables and the environment that use_api was given.
struct Given {
  const pfrt_api* api = nullptr;
  pfrt_env* env = nullptr;
};
inline Given& given() noexcept {
  static Given all;
  return all;
}

#ifdef PYFLAME_RT_GIVEN_API
inline const pfrt_api* open_api() {
  if (given().api == nullptr)
    throw PyFlameRTError(
        "the C++ API is used before use_api: a plug-in calls it first, with the tables and the "
        "environment of its request",
        PFRT_CODE_INVALID_ARGUMENT);
  return given().api;
}
#else
inline const pfrt_api* open_api() {
  if (given().api != nullptr) return given().api;
  pfrt_abi_info info{};
  info.struct_size = sizeof(info);
  const pfrt_api* table = pfrt_get_api(PFRT_ABI_VERSION, &info);
  if (table == nullptr) throw PyFlameRTError(str(info.message), PFRT_CODE_UNSUPPORTED);
  return table;
}
#endif

}  // namespace detail

// Makes the C++ API work with the library that |table| is of, and with |env| as the environment. It
// is for plug-ins, which are handed both in a request (pfrt_service_request) and link no library:
// they define PYFLAME_RT_GIVEN_API in all their sources, and call this before anything else, on one
// thread. |env| is borrowed: what the plug-in makes here goes before the environment does. A later
// call with another environment is for what is made afterwards; one plug-in serves one at a time.
inline void use_api(const pfrt_api* table, pfrt_env* env) {
  if (table == nullptr || env == nullptr)
    throw PyFlameRTError("use_api: the table or the environment is NULL",
                         PFRT_CODE_INVALID_ARGUMENT);
  if (table->abi >> 16 != PFRT_ABI_MAJOR || table->abi < PFRT_ABI_VERSION)
    throw PyFlameRTError("use_api: the table is of ABI " + std::to_string(table->abi >> 16) + "." +
                             std::to_string(table->abi & 0xffff) + ", this was built for " +
                             std::to_string(PFRT_ABI_MAJOR) + "." +
                             std::to_string(PFRT_ABI_VERSION & 0xffff),
                         PFRT_CODE_UNSUPPORTED);
  detail::given() = {table, env};
}

// Returns the library's table. Throws PyFlameRTError when it implements another version.
inline const pfrt_api& api() {
  static const pfrt_api* const table = detail::open_api();
  return *table;
}

#ifndef PYFLAME_RT_GIVEN_API
// Version of the library, such as "0.1.0".
inline std::string version() {
  pfrt_abi_info info{};
  info.struct_size = sizeof(info);
  (void)pfrt_get_api(PFRT_ABI_VERSION, &info);
  return detail::str(info.version);
}
#endif

namespace detail {

inline void collect_faults(const pfrt_status* status, std::vector<std::string>* out) {
  const pfrt_status_api& table = *api().status;
  for (size_t i = 0; i < table.child_count(status); ++i) {
    const pfrt_status* child = table.child(status, i);
    if (child == nullptr) continue;
    if (table.child_count(child) != 0) {
      collect_faults(child, out);
    } else {
      out->push_back(str(table.message(child)));
    }
  }
}

// Takes over |status|; holds the message of a failure, and its faults in |faults|.
struct Failure {
  explicit Failure(PFRT_OWN pfrt_status* status)
      : code(api().status->code(status)), message(str(api().status->message(status))) {
    collect_faults(status, &faults);
    api().status->release(status);
  }
  pfrt_code code;
  std::string message;
  std::vector<std::string> faults;
};

// Takes over |status| and throws its error, unless it is success.
inline void check(PFRT_OWN pfrt_status* status) {
  if (status == nullptr) return;
  Failure failure(status);
  throw_error(failure.code, failure.message, std::move(failure.faults));
}

template <class T>
struct HandleOps;

#define PFRT_CXX_HANDLE_OPS(type, area)                                         \
  template <>                                                                   \
  struct HandleOps<type> {                                                      \
    static void retain(type* handle) noexcept { api().area->retain(handle); }   \
    static void release(type* handle) noexcept { api().area->release(handle); } \
  };
PFRT_CXX_HANDLE_OPS(pfrt_env, env)
PFRT_CXX_HANDLE_OPS(pfrt_options, options)
PFRT_CXX_HANDLE_OPS(pfrt_value, value)
PFRT_CXX_HANDLE_OPS(pfrt_graph, graph)
PFRT_CXX_HANDLE_OPS(pfrt_model, model)
PFRT_CXX_HANDLE_OPS(pfrt_session, session)
PFRT_CXX_HANDLE_OPS(pfrt_state, state)
PFRT_CXX_HANDLE_OPS(pfrt_cache, cache)
PFRT_CXX_HANDLE_OPS(pfrt_batcher, batcher)
PFRT_CXX_HANDLE_OPS(pfrt_streams, streams)
#undef PFRT_CXX_HANDLE_OPS

// Holds a reference to a C object, or none.
template <class T>
class Handle {
 public:
  Handle() noexcept = default;
  static Handle adopt(PFRT_OWN T* handle) noexcept {
    Handle h;
    h.handle_ = handle;
    return h;
  }
  static Handle share(T* handle) noexcept {
    if (handle != nullptr) HandleOps<T>::retain(handle);
    return adopt(handle);
  }
  Handle(const Handle& other) noexcept : Handle(share(other.handle_)) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) HandleOps<T>::release(handle_);
  }

  T* get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Gives the reference away.
  PFRT_OWN T* detach() noexcept { return std::exchange(handle_, nullptr); }
  // Returns the place for an out-parameter; drops the reference held before.
  T** out() noexcept {
    *this = Handle();
    return &handle_;
  }

 private:
  T* handle_ = nullptr;
};

}  // namespace detail

// Handle of a body, shared between a node's attribute and a Graph object (Graph::shared,
// Node::set_attr).
using GraphHandle = detail::Handle<pfrt_graph>;

}  // namespace pyflame_rt
