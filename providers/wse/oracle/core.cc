// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/oracle/core.h"

#include <algorithm>
#include <utility>

namespace pfrt::wse::oracle {
namespace {

using Kind = Operation::Kind;

constexpr double kRelayCycle = 1;  // from taking a wavelet to sending the sum (rule 8)

}  // namespace

Event Core::Inbox::take() {
  const Event event = came[taken++];
  if (empty()) {
    came.clear();
    taken = 0;
  }
  return event;
}

Core::Core(int pe, const Machine& machine, Arithmetic arithmetic, Program program, Fabric& fabric,
           EventQueue& events)
    : pe_(pe),
      machine_(machine),
      arithmetic_(arithmetic),
      program_(std::move(program)),
      fabric_(fabric),
      events_(events) {}

void Core::begin(double now) {
  free_at_ = now;
  if (finished()) return;
  const Operation& operation = program_[next_];
  sent_ = message_ = 0;
  got_.assign(operation.in.size(), 0);
  waits_ = issued_ = blocked_ = false;
  start_ = now + (operation.kind == Kind::kSend ? machine_.send_setup : machine_.dsd_setup);
  switch (operation.kind) {
    case Kind::kCompute:
      events_.push(now + operation.cycles, Event::Kind::kDone, pe_);
      break;
    case Kind::kSend:
      events_.push(start_, Event::Kind::kTick, pe_);
      break;
    case Kind::kReceive:
    case Kind::kRelay:
      plan_take(operation);
      break;
    case Kind::kExchange:
      begin_exchange(now, operation);
      break;
  }
}

// Reading: the datapath does one thing at a time, so no wavelet moves before all operations are
// issued.
void Core::begin_exchange(double now, const Operation& operation) {
  start_ = now + operation.issues * machine_.async;
  work_until_ = start_ + operation.cycles;
  complete_ = 0;
  charged_ = moved_out_ = moved_in_ = 0;
  events_.push(start_, Event::Kind::kTick, pe_);
}

void Core::done(double now) {
  const Operation& operation = program_[next_];
  if (operation.at_end) operation.at_end();
  if (++times_ == operation.times) {
    ++next_;
    times_ = 0;
  }
  begin(now);
}

void Core::tick(double now) {
  const Operation& operation = program_[next_];
  switch (operation.kind) {
    case Kind::kCompute:
      break;
    case Kind::kSend:
      tick_send(now, operation);
      break;
    case Kind::kReceive:
    case Kind::kRelay:
      tick_receive(now, operation);
      break;
    case Kind::kExchange:
      tick_exchange(now, operation);
      break;
  }
}

void Core::at_core(const Event& event) {
  inboxes_[event.wavelet.color].came.push_back(event);
  if (finished()) return;
  const Operation& operation = program_[next_];
  if (waits_ && event.wavelet.color == operation.in[0].color) plan_take(operation);
  if (issued_) {
    drain(event.time, operation);
    end_exchange_if_complete(operation);
  }
}

// A wavelet that waited at the ramp for room may come now.
Event Core::take(const Message& message, double now) {
  const Event event = inbox(message).take();
  fabric_.core_took(pe_, now);
  return event;
}

void Core::ramp_freed(double now) {
  if (finished() || !blocked_) return;
  blocked_ = false;
  events_.push(std::max(now, start_), Event::Kind::kTick, pe_);
}

void Core::put_out(double at, const Message& message, size_t wavelet) {
  const std::vector<float>& data = *message.data;
  Wavelet out;
  out.color = message.color;
  const size_t first = wavelet * static_cast<size_t>(message.elements);
  const size_t last = std::min(first + static_cast<size_t>(message.elements), data.size());
  for (size_t i = first; i < last; ++i) out.element[out.count++] = data[i];
  fabric_.enter(pe_, at, out, message.routes);
}

void Core::put_in(const Message& message, size_t index, const Wavelet& wavelet, bool adds) {
  const size_t first = index * static_cast<size_t>(message.elements);
  for (size_t i = 0; i < wavelet.count; ++i) {
    float& to = (*message.data)[first + i];
    to = adds ? arithmetic_.add(wavelet.element[i], to) : wavelet.element[i];
  }
}

// Rule 6. Reading: free one `wavelet` after the last has entered the ramp, as a receiver is.
void Core::tick_send(double now, const Operation& operation) {
  blocked_ = !fabric_.has_room(pe_, operation.out[0].color);
  if (blocked_) return;
  put_out(now, operation.out[0], sent_++);
  const bool last = sent_ == operation.out[0].wavelets();
  events_.push(now + machine_.wavelet, last ? Event::Kind::kDone : Event::Kind::kTick, pe_);
}

// The next wavelet is taken when it is here and the core is ready, one `wavelet` after another.
void Core::plan_take(const Operation& operation) {
  const Inbox& from = inbox(operation.in[0]);
  waits_ = from.empty();
  if (waits_) return;
  events_.push(std::max(from.came[from.taken].time, start_), Event::Kind::kTick, pe_);
}

// Rules 7 and 8. Reading: a relay is free when the sum that it sends last has entered the ramp.
void Core::tick_receive(double now, const Operation& operation) {
  const bool relays = operation.kind == Kind::kRelay;
  blocked_ = relays && !fabric_.has_room(pe_, operation.out[0].color);
  if (blocked_) return;
  const Event event = take(operation.in[0], now);
  put_in(operation.in[0], got_[0], event.wavelet, operation.adds);
  if (relays) put_out(now + kRelayCycle, operation.out[0], got_[0]);
  start_ = now + machine_.wavelet;
  if (++got_[0] < operation.in[0].wavelets()) {
    plan_take(operation);
  } else {
    events_.push(start_ + (relays ? kRelayCycle : 0), Event::Kind::kDone, pe_);
  }
}

// Charges the datapath for the ramp. A wavelet out and a wavelet in share a cycle of the ramp,
// which the datapath loses.
void Core::charge(double now) {
  const size_t moved = std::max(moved_out_, moved_in_);
  work_until_ =
      std::max(work_until_, now) + static_cast<double>(moved - charged_) * machine_.wavelet;
  charged_ = moved;
}

// Rule 10: sends the next wavelet of the messages out, one message after another.
void Core::tick_exchange(double now, const Operation& operation) {
  issued_ = true;
  blocked_ =
      message_ < operation.out.size() && !fabric_.has_room(pe_, operation.out[message_].color);
  if (message_ < operation.out.size() && !blocked_) {
    const Message& message = operation.out[message_];
    const bool last = sent_ + 1 == message.wavelets();
    const double at = last ? std::max(now, start_ + machine_.exchange_floor) : now;
    put_out(at + machine_.dispatch, message, sent_++);
    ++moved_out_;
    charge(now);
    if (sent_ == message.wavelets()) {
      ++message_;
      sent_ = 0;
    }
    if (message_ < operation.out.size())
      events_.push(now + machine_.wavelet, Event::Kind::kTick, pe_);
  }
  drain(now, operation);
  end_exchange_if_complete(operation);
}

// Reading: a message that came before this PE was ready for it was complete then; only the cycles
// for taking it are still to be paid.
void Core::drain(double now, const Operation& operation) {
  for (size_t i = 0; i < operation.in.size(); ++i) {
    const Message& message = operation.in[i];
    while (got_[i] < message.wavelets() && !inbox(message).empty()) {
      const Event event = take(message, now);
      put_in(message, got_[i]++, event.wavelet, operation.adds);
      ++moved_in_;
      charge(now);
      complete_ = std::max(complete_, event.time + machine_.completion);
    }
  }
}

void Core::end_exchange_if_complete(const Operation& operation) {
  if (message_ < operation.out.size()) return;
  for (size_t i = 0; i < operation.in.size(); ++i)
    if (got_[i] < operation.in[i].wavelets()) return;
  issued_ = false;  // wavelets that come from now on are for a later step
  events_.push(std::max(work_until_, complete_) + operation.tasks * machine_.task,
               Event::Kind::kDone, pe_);
}

}  // namespace pfrt::wse::oracle
