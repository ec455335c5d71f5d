// The C library's heap, which compilers leave in pieces.
#pragma once

namespace kp {

// Gives the pages that nothing uses back to the system. A compiler takes and frees many megabytes between the few kilobytes that stay, and
// glibc keeps those pages for good: a process that compiles now and then grows to several times its use. Below a millisecond as a rule.
// Does nothing where the C library has no such call.
void give_back_heap() noexcept;

}  // namespace kp
