// The C library's heap, which compilers leave fragmented.
#pragma once

namespace kp {

// Gives unused pages back to the system. A compiler takes and frees many megabytes around a few kilobytes
// that stay, and glibc keeps those pages for good: a process that sometimes compiles grows to several times
// its use. Usually takes less than a millisecond. Does nothing if the C library has no such call.
void give_back_heap() noexcept;

}  // namespace kp
