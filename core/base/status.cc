// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include <charconv>
#include <new>

namespace pfrt {
namespace {

// Is neither on the heap nor ever destroyed: statuses are read when memory is gone and while the
// process exits.
template <typename T>
const T& empty() {
  alignas(T) static unsigned char room[sizeof(T)];
  static const T* const made = new (room) T();
  return *made;
}

}  // namespace

std::string_view code_text(Code code) {
  switch (code) {
#define PFRT_X(name, number, text) \
  case Code::k##name:              \
    return text;
    PFRT_CODE_TABLE(PFRT_X)
#undef PFRT_X
  }
  return "unknown code";
}

struct Status::State {
  Code code;
  std::string message;
  std::vector<Status> children;
  const Device* culprit = nullptr;
  bool only_request = false;
};

void Status::Delete::operator()(State* state) const noexcept { delete state; }

Status::Status(Code code, std::string message) : state_(new State{code, std::move(message), {}}) {}

Status::Status(const Status& other) : state_(other.state_ ? new State(*other.state_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) state_.reset(other.state_ ? new State(*other.state_) : nullptr);
  return *this;
}

Code Status::code() const { return state_ ? state_->code : Code::kOK; }

const Device* Status::culprit() const { return state_ ? state_->culprit : nullptr; }

const std::string& Status::message() const {
  return state_ ? state_->message : empty<std::string>();
}

const std::vector<Status>& Status::children() const {
  return state_ ? state_->children : empty<std::vector<Status>>();
}

void Status::add_child(Status child) {
  if (state_) state_->children.push_back(std::move(child));
}

Status& Status::prepend(std::string_view prefix) {
  if (state_) state_->message = pfrt::message(prefix, ": ", state_->message);
  return *this;
}

Status& Status::blame(const Device& culprit) {
  if (state_ && !state_->culprit) state_->culprit = &culprit;
  return *this;
}

Status& Status::blame_request(const Device& culprit) {
  if (state_ && !state_->culprit) state_->only_request = true;
  return blame(culprit);
}

bool Status::only_request() const { return state_ && state_->only_request; }

namespace detail {
void append(std::string& out, std::string_view text) { out += text; }
void append(std::string& out, const char* text) { out += text; }
void append(std::string& out, const std::string& text) { out += text; }
void append(std::string& out, pfrt_string text) { out += view(text); }

template <typename T>
static void append_number(std::string& out, T number) {
  char digits[40];
  auto end = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end.ptr);
}
void append(std::string& out, double number) { append_number(out, number); }
void append(std::string& out, long long number) { append_number(out, number); }
void append(std::string& out, unsigned long long number) { append_number(out, number); }
}  // namespace detail

}  // namespace pfrt
