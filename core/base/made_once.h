// SPDX-License-Identifier: Apache-2.0
//
// Values of a few keys. Each is made once, when it is first asked for, outside the lock under which
// the others are found: a thread that asks for a value in the making waits for it, others do not
// wait. The least recently used ones are dropped. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <ranges>
#include <utility>

#include "core/base/lock.h"
#include "core/base/status.h"

namespace pfrt {

// |Value| is a pointer of some kind.
template <typename Key, typename Value>
class MadeOnce {
 public:
  explicit MadeOnce(size_t most) : most_(most) {}

  // Null where there is none yet. |key| may be another range type where Key is a range.
  template <typename Like>
  Value find(const Like& key) {
    const std::lock_guard lock(mutex_);
    const auto at = find_entry(key);
    if (at == entries_.end() || !at->value) return {};
    entries_.splice(entries_.begin(), entries_, at);
    return at->value;
  }

  // |key| is as in find. |make| gives a Result<Value>; its failure is returned, and the next caller
  // makes the value again. |stop|, which gives a Status, is asked while another thread is making
  // the value.
  template <typename Like, typename Stop, typename Make>
  Result<Value> get(const Like& key, Stop stop, Make make) {
    std::shared_ptr<Making> making;
    {
      Entries dropped;  // outlives the lock
      const std::lock_guard lock(mutex_);
      const auto at = find_entry(key);
      if (at != entries_.end()) {
        entries_.splice(entries_.begin(), entries_, at);
      } else {
        entries_.push_front({key_of(key), {}, std::make_shared<Making>()});
        if (entries_.size() > most_) {
          dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
          ++dropped_;
        }
      }
      if (entries_.front().value) return entries_.front().value;
      making = entries_.front().making;
    }
    Status stopped;
    const auto lock = lock_unless(making->mutex, [&] {
      stopped = stop();
      return !stopped.ok();
    });
    if (!lock.owns_lock()) return stopped;
    if (making->value) return making->value;
    Result<Value> made = make();
    if (made.ok()) making->value = *made;
    Entries failed;
    const std::lock_guard done(mutex_);
    const auto at = std::ranges::find(entries_, making, &Entry::making);
    if (at == entries_.end()) return made;
    if (made.ok()) {
      at->value = *made;
      at->making = nullptr;
    } else {
      failed.splice(failed.begin(), entries_, at);
    }
    return made;
  }

  // The value used last; null where there is none.
  Value recent() const {
    const std::lock_guard lock(mutex_);
    for (const Entry& e : entries_)
      if (e.value) return e.value;
    return {};
  }

  // Calls |fn| with each key and its value, under the lock.
  template <typename Fn>
  void each(Fn fn) const {
    const std::lock_guard lock(mutex_);
    for (const Entry& e : entries_)
      if (e.value) fn(e.key, e.value);
  }

  // A value in the making stays with the threads that wait for it.
  void clear() {
    Entries dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(entries_);
  }

  // Number of values dropped since the beginning.
  uint64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  struct Making {
    std::timed_mutex mutex;  // held while the value is made
    Value value{};
  };
  struct Entry {
    Key key;
    Value value;
    std::shared_ptr<Making> making;  // until there is a value
  };
  using Entries = std::list<Entry>;

  template <typename Like>
  typename Entries::iterator find_entry(const Like& key) {
    return std::ranges::find_if(entries_, [&](const Entry& e) { return same(e.key, key); });
  }
  template <typename Like>
  static bool same(const Key& key, const Like& like) {
    if constexpr (std::ranges::range<Like>) {
      return std::ranges::equal(key, like);
    } else {
      return key == like;
    }
  }
  template <typename Like>
  static Key key_of(const Like& like) {
    if constexpr (std::ranges::range<Like>) {
      return Key(std::begin(like), std::end(like));
    } else {
      return like;
    }
  }

  const size_t most_;
  mutable std::mutex mutex_;
  Entries entries_;  // most recently used first
  uint64_t dropped_ = 0;
};

}  // namespace pfrt
