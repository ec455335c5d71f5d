#include "base/long_call.hpp"

namespace kp {
namespace {

LongCall chosen = [](const std::function<void()>& body) { body(); };

Warning warning = [](const std::string&) {};

}  // namespace

void set_long_call(LongCall how) noexcept { chosen = how; }

void long_call(const std::function<void()>& body) { chosen(body); }

void set_warning(Warning how) noexcept { warning = how; }

void warn_user(const std::string& text) { warning(text); }

}  // namespace kp
