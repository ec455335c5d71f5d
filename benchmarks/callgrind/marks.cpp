// Switches callgrind's counting on and off from inside the program that it runs. Outside valgrind these do
// nothing.
#include <valgrind/callgrind.h>

extern "C" __attribute__((visibility("default"))) void marks_start() { CALLGRIND_START_INSTRUMENTATION; }

extern "C" __attribute__((visibility("default"))) void marks_stop() { CALLGRIND_STOP_INSTRUMENTATION; }
