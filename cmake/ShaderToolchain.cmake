# kp_shader_toolchain: shaderc, glslang, SPIRV-Tools and SPIRV-Cross as one thing to link.
#
# The static libraries refer to each other in both directions, so they stand in one group. libshaderc_combined.a of
# Debian and Ubuntu lacks parts of glslang; which further archives hold those differs between glslang versions, so what
# exists is linked. A missing symbol would show only when the module is imported: -z defs shows it here.

find_path(SHADERC_INCLUDE_DIR shaderc/shaderc.hpp)
find_path(SPIRV_TOOLS_INCLUDE_DIR spirv-tools/libspirv.hpp)
find_path(SPIRV_HEADERS_INCLUDE_DIR spirv/unified1/spirv.hpp)
find_path(SPIRV_CROSS_INCLUDE_DIR spirv_cross/spirv_glsl.hpp)

function(kp_require variable what package)
  if(NOT ${variable})
    message(FATAL_ERROR "${what} not found. Debian/Ubuntu: apt-get install ${package}. Others: the Vulkan SDK.")
  endif()
endfunction()

kp_require(SHADERC_INCLUDE_DIR "shaderc's headers" libshaderc-dev)
kp_require(SPIRV_TOOLS_INCLUDE_DIR "SPIRV-Tools' headers" spirv-tools)
kp_require(SPIRV_HEADERS_INCLUDE_DIR "SPIR-V headers" spirv-headers)
kp_require(SPIRV_CROSS_INCLUDE_DIR "SPIRV-Cross' headers" libspirv-cross-c-shared-dev)

set(KP_TOOLCHAIN_LIBRARIES)
function(kp_toolchain_library name required package)
  find_library(KP_LIB_${name} NAMES lib${name}.a ${name})
  if(KP_LIB_${name})
    set(KP_TOOLCHAIN_LIBRARIES ${KP_TOOLCHAIN_LIBRARIES} ${KP_LIB_${name}} PARENT_SCOPE)
  elseif(required)
    message(FATAL_ERROR "The library ${name} was not found. Debian/Ubuntu: apt-get install ${package}. Others: the Vulkan SDK.")
  endif()
endfunction()

kp_toolchain_library(shaderc_combined TRUE libshaderc-dev)
foreach(name glslang SPIRV HLSL MachineIndependent GenericCodeGen OSDependent OGLCompiler)
  kp_toolchain_library(${name} FALSE glslang-dev)
endforeach()
kp_toolchain_library(SPIRV-Tools-opt TRUE spirv-tools)
kp_toolchain_library(SPIRV-Tools TRUE spirv-tools)
foreach(name spirv-cross-glsl spirv-cross-hlsl spirv-cross-core)
  kp_toolchain_library(${name} TRUE libspirv-cross-c-shared-dev)
endforeach()

add_library(kp_shader_toolchain INTERFACE)
target_include_directories(kp_shader_toolchain SYSTEM INTERFACE
  ${SHADERC_INCLUDE_DIR} ${SPIRV_TOOLS_INCLUDE_DIR} ${SPIRV_HEADERS_INCLUDE_DIR} ${SPIRV_CROSS_INCLUDE_DIR})
if(APPLE OR MSVC)
  target_link_libraries(kp_shader_toolchain INTERFACE ${KP_TOOLCHAIN_LIBRARIES})
else()
  target_link_libraries(kp_shader_toolchain INTERFACE -Wl,--start-group ${KP_TOOLCHAIN_LIBRARIES} -Wl,--end-group)
endif()
