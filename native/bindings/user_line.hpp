// The line of the user's code that this thread is in.
#pragma once

#include <string>

namespace kp {

// Lines in files below `folder` are not the user's. Call it with the interpreter lock.
void set_package(std::string folder);
// "file.py:12": the first line outside of the package; empty without the interpreter lock. May be called
// under locks of the core: it neither waits for the interpreter lock nor lets Python collect garbage, which
// may destroy objects of ours.
[[nodiscard]] std::string user_line();

}  // namespace kp
