// Later versions of VkFFT include it by this name.
#include "glslang/Include/glslang_c_interface.h"
