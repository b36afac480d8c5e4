// SPDX-License-Identifier: Apache-2.0
//
// Finds what a program's steps allow the host to do with its buffers. Pure functions; thread-safe.
#pragma once

#include <deque>
#include <vector>

#include "providers/cpu/program/step.h"

namespace pfrt::cpu {

// Says which temporaries may take the memory of one that dies in the same step
// (pfrt_buffer::may_alias).
void share_memory(const std::deque<Step>& steps, std::vector<pfrt_buffer>& buffers);

// Says which constants no step needs aligned, such as tables of embeddings: the host need not copy
// those from a file, and a run reads few of their rows.
void relax_alignment(const std::deque<Step>& steps, std::vector<pfrt_buffer>& buffers);

}  // namespace pfrt::cpu
