// SPDX-License-Identifier: Apache-2.0
//
// A PE's core: it runs a list of operations one after another by rules 6 to 10 of the README. Not
// thread-safe.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "providers/wse/machine/machine.h"
#include "providers/wse/oracle/arithmetic.h"
#include "providers/wse/oracle/event_queue.h"
#include "providers/wse/oracle/fabric.h"

namespace pfrt::wse::oracle {

// A vector in the PE's memory on its way out or in.
struct Message {
  uint8_t color = 0;
  int elements = 1;  // in a wavelet
  std::vector<float>* data = nullptr;
  std::vector<Route> routes = {};  // out only

  size_t wavelets() const {
    const size_t each = static_cast<size_t>(elements);
    return (data->size() + each - 1) / each;
  }
};

struct Operation {
  enum class Kind : uint8_t {
    kCompute,   // |cycles|; also role tests
    kSend,      // out[0], a multicast too
    kReceive,   // in[0]
    kRelay,     // in[0] is added and goes on as out[0], which has the same data
    kExchange,  // all of |out| and |in| under |cycles| of computation, then |tasks|
  };
  Kind kind = Kind::kCompute;
  double cycles = 0;
  int times = 1;              // one after another
  int issues = 0, tasks = 0;  // asynchronous operations and tasks of an exchange
  bool adds = false;          // wavelets that are received are added to the data
  std::vector<Message> out = {}, in = {};
  std::function<void()> at_end = {};  // changes of the PE's memory
};

using Program = std::vector<Operation>;

class Core {
 public:
  // All but |program| outlive this.
  Core(int pe, const Machine& machine, Arithmetic arithmetic, Program program, Fabric& fabric,
       EventQueue& events);

  void start() { begin(0); }
  void at_core(const Event& event);  // a wavelet came
  void ramp_freed(double now);       // its ramp takes another wavelet
  // Whether the queue of |color| takes another wavelet.
  bool has_room(int color) const {
    const Inbox& inbox = inboxes_[static_cast<size_t>(color)];
    return static_cast<double>(inbox.came.size() - inbox.taken) < machine_.input_queue_words;
  }
  void tick(double now);
  void done(double now);

  bool finished() const { return next_ == program_.size(); }
  double free_at() const { return free_at_; }

 private:
  struct Inbox {  // of a color; wavelets that came and were not taken
    std::vector<Event> came;
    size_t taken = 0;
    bool empty() const { return taken == came.size(); }
    Event take();
  };

  void begin(double now);
  void begin_exchange(double now, const Operation& operation);
  void put_out(double at, const Message& message, size_t wavelet);
  void put_in(const Message& message, size_t index, const Wavelet& wavelet, bool adds);
  void tick_send(double now, const Operation& operation);
  void tick_receive(double now, const Operation& operation);
  void tick_exchange(double now, const Operation& operation);
  void plan_take(const Operation& operation);
  void charge(double now);
  void drain(double now, const Operation& operation);
  void end_exchange_if_complete(const Operation& operation);
  Inbox& inbox(const Message& message) { return inboxes_[message.color]; }
  Event take(const Message& message, double now);

  int pe_;
  const Machine& machine_;
  Arithmetic arithmetic_;
  Program program_;
  Fabric& fabric_;
  EventQueue& events_;
  std::array<Inbox, Fabric::kColors> inboxes_;
  size_t next_ = 0;  // the operation at hand
  int times_ = 0;    // times that it has been done
  double free_at_ = 0;

  // State of the operation at hand.
  double start_ = 0;         // when its first wavelet may move
  size_t sent_ = 0;          // wavelets, of the message at hand where there are several
  size_t message_ = 0;       // of |out|
  std::vector<size_t> got_;  // wavelets, for each of |in|
  bool waits_ = false;       // for a wavelet that has not come
  bool blocked_ = false;     // until the ramp takes another wavelet
  bool issued_ = false;      // all asynchronous operations of an exchange
  double work_until_ = 0;    // an exchange keeps the datapath until then
  size_t charged_ = 0;       // wavelets whose cycles the datapath has lost
  size_t moved_out_ = 0, moved_in_ = 0;
  double complete_ = 0;  // when the last message that came is complete
};

}  // namespace pfrt::wse::oracle
