#include "base/host_heap.hpp"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace kp {

void give_back_heap() noexcept {
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

}  // namespace kp
