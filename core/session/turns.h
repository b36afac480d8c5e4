// SPDX-License-Identifier: Apache-2.0
//
// Lets users of one thing take turns, in the order in which they ask. Those that share it and stand
// one behind the other have it together; nobody overtakes. A forked child has none of its parent's
// users. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "core/base/stop.h"

namespace pfrt {

class Turns {
 public:
  enum class Use { kAlone, kShared };

  // A place in the row. When it goes, before its turn or after, the next ones move up. The row
  // outlives its places.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept;
    Place& operator=(Place&& other) noexcept;
    ~Place() { leave(); }
    void leave();
    explicit operator bool() const { return row_ != nullptr; }

   private:
    friend class Turns;
    Place(Turns* row, uint64_t number) : row_(row), number_(number) {}
    Turns* row_ = nullptr;
    uint64_t number_ = 0;
  };

  // Takes a place at the end of the row.
  Place join(Use use);
  // Returns when it is the turn of |place|, or with the error of |stop|, which is asked every few
  // milliseconds. BUSY, with |doing| before it, where this thread itself has a turn that |place|
  // waits for.
  Status wait(const Place& place, const Stop& stop, std::string_view doing);
  // Calls |then| once, on the thread that leaves the turn to |place|. False, and |then| is not
  // called, when the turn has come already. |then| may not throw.
  bool call_later(const Place& place, std::function<void()> then);
  // Whether nobody is in the row.
  bool empty() const;
  // Whether somebody in the row has it alone, or waits for that.
  bool wanted_alone() const;

 private:
  struct Entry {
    Use use;
    std::thread::id owner;  // thread that has the turn, once it has waited for it
  };
  using Row = std::map<uint64_t, Entry>;  // by number
  Result<bool> has_come(const Place& place, std::string_view doing);
  // The end of those that have the turn: the first in the row, or all that share up to one that
  // does not.
  Row::iterator end_of_turn() const;
  void leave(uint64_t number);
  void forget_parents() const;

  mutable std::mutex mutex_;
  mutable Row row_;
  mutable std::map<uint64_t, std::function<void()>> later_;  // by number
  uint64_t joined_ = 0;
  mutable uint32_t generation_ = 0;  // number of forks when |row_| was made
};

}  // namespace pfrt
