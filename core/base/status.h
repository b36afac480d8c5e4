// SPDX-License-Identifier: Apache-2.0
//
// Status: the outcome of work that can fail. A null state is success and costs a pointer; an error
// carries a code of the ABI's table, a message (what was attempted, on what, what was found, the
// nearest fix) and, for lists of faults, children. Result<T> is a value or a Status. Both are
// movable values without shared state; thread-compatible.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pyflame_rt/types.h"

namespace pfrt {

enum class Code : uint32_t {
#define PFRT_X(name, number, text) k##name = number,
  PFRT_CODE_TABLE(PFRT_X)
#undef PFRT_X
};

// The fixed text of |code|, or "unknown code".
std::string_view code_text(Code code);

class Device;  // core/memory

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other);
  Status& operator=(const Status& other);

  bool ok() const { return state_ == nullptr; }
  Code code() const;
  const std::string& message() const;
  const std::vector<Status>& children() const;
  void add_child(Status child);
  // Puts "|prefix|: " before the message. No-op on success.
  Status& prepend(std::string_view prefix);
  // The device whose call failed, to be compared and not to be used: it may be gone. Null: no
  // particular one.
  const Device* culprit() const;
  // Names the culprit; the first one named stays. No-op on success.
  Status& blame(const Device& culprit);
  // Names a culprit that refused this request, and is as good as before for anything else.
  Status& blame_request(const Device& culprit);
  bool only_request() const;

 private:
  struct State;
  struct Delete {
    void operator()(State* state) const noexcept;
  };
  std::unique_ptr<State, Delete> state_;  // a success is moved and destroyed by a test of a pointer
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  Status take_status() { return std::move(status_); }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T take() { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// Joins parts as text: message("Conv ", name, ": rank ", 3).
namespace detail {
void append(std::string& out, std::string_view text);
void append(std::string& out, const char* text);
void append(std::string& out, const std::string& text);
void append(std::string& out, pfrt_string text);
void append(std::string& out, double number);
void append(std::string& out, long long number);
void append(std::string& out, unsigned long long number);
inline void append(std::string& out, long n) { append(out, static_cast<long long>(n)); }
inline void append(std::string& out, int n) { append(out, static_cast<long long>(n)); }
inline void append(std::string& out, unsigned long n) {
  append(out, static_cast<unsigned long long>(n));
}
inline void append(std::string& out, unsigned n) {
  append(out, static_cast<unsigned long long>(n));
}
}  // namespace detail

template <typename... Parts>
std::string message(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

template <typename... Parts>
Status error(Code code, const Parts&... parts) {
  return Status(code, message(parts...));
}

inline std::string_view view(pfrt_string s) {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}
inline pfrt_string to_c(std::string_view s) { return pfrt_string{s.data(), s.size()}; }

}  // namespace pfrt

#define PFRT_CONCAT_(a, b) a##b
#define PFRT_CONCAT(a, b) PFRT_CONCAT_(a, b)

// Returns from the enclosing function when |expr| (a Status) failed.
#define PFRT_TRY(expr)                                                  \
  do {                                                                  \
    if (::pfrt::Status pfrt_s_ = (expr); !pfrt_s_.ok()) return pfrt_s_; \
  } while (0)

// Sets |lhs| to the value of |expr| (a Result), or returns its status.
#define PFRT_ASSIGN(lhs, expr) PFRT_ASSIGN_(PFRT_CONCAT(pfrt_r_, __LINE__), lhs, expr)
#define PFRT_ASSIGN_(tmp, lhs, expr)       \
  auto tmp = (expr);                       \
  if (!tmp.ok()) return tmp.take_status(); \
  lhs = tmp.take()
