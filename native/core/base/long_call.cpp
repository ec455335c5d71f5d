#include "base/long_call.hpp"

namespace kp {
namespace {

LongCall chosen = [](const std::function<void()>& body) { body(); };

}  // namespace

void set_long_call(LongCall how) noexcept { chosen = how; }

void long_call(const std::function<void()>& body) { chosen(body); }

}  // namespace kp
