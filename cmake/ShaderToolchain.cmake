# kp_shader_toolchain: shaderc, glslang, SPIRV-Tools and SPIRV-Cross as one thing to link.
#
# How shaderc comes differs. Upstream and the Vulkan SDK have a libshaderc_combined that holds glslang and SPIRV-Tools;
# Debian's and Ubuntu's leaves both out, and into how many archives glslang is cut depends on its version; Fedora has
# shared libraries only. So the candidates below are linked, in this order, into a small program that uses each part,
# and the first that links is taken. Without this, what is missing would show when Python imports the module.

include(CheckCXXSourceCompiles)

function(kp_require variable what debian)
  if(NOT ${variable})
    separate_arguments(debian UNIX_COMMAND "${debian}")
    kp_how_to_install(command ${debian})
    message(FATAL_ERROR "${what} not found.\n${command}\nAny system: the Vulkan SDK, with CMAKE_PREFIX_PATH set to it.")
  endif()
endfunction()

find_path(SHADERC_INCLUDE_DIR shaderc/shaderc.hpp)
find_path(SPIRV_TOOLS_INCLUDE_DIR spirv-tools/libspirv.hpp)
find_path(SPIRV_CROSS_INCLUDE_DIR spirv_cross/spirv_glsl.hpp)
kp_require(SHADERC_INCLUDE_DIR "shaderc's headers" libshaderc-dev)
kp_require(SPIRV_TOOLS_INCLUDE_DIR "SPIRV-Tools' headers" spirv-tools)
kp_require(SPIRV_CROSS_INCLUDE_DIR "SPIRV-Cross' headers" libspirv-cross-c-shared-dev)
find_path(SPIRV_HEADERS_INCLUDE_DIR spirv/unified1/spirv.hpp)
kp_require(SPIRV_HEADERS_INCLUDE_DIR "SPIR-V's headers" spirv-headers)

# Appends the library to `list` where it exists. The archive goes before the shared library of the same name: what is
# linked in cannot clash with another version of it that some driver brings into the process.
function(kp_find_library list name)
  find_library(KP_LIB_${name}
    NAMES ${CMAKE_STATIC_LIBRARY_PREFIX}${name}${CMAKE_STATIC_LIBRARY_SUFFIX} ${name})
  mark_as_advanced(KP_LIB_${name})
  if(KP_LIB_${name})
    set(${list} ${${list}} ${KP_LIB_${name}} PARENT_SCOPE)
  endif()
endfunction()

kp_find_library(KP_COMBINED shaderc_combined)
foreach(name shaderc_shared shaderc)
  kp_find_library(KP_SHADERC ${name})
endforeach()
foreach(name glslang SPIRV HLSL MachineIndependent GenericCodeGen OSDependent OGLCompiler)
  kp_find_library(KP_GLSLANG ${name})
endforeach()
# The optimizer refers to the tools, so it stands first.
foreach(name SPIRV-Tools-opt SPIRV-Tools)
  kp_find_library(KP_SPIRV_TOOLS ${name})
endforeach()
foreach(name spirv-cross-hlsl spirv-cross-glsl spirv-cross-core)
  kp_find_library(KP_SPIRV_CROSS ${name})
  kp_require(KP_LIB_${name} "The library ${name}" libspirv-cross-c-shared-dev)
endforeach()
if(NOT KP_COMBINED AND NOT KP_SHADERC)
  kp_require(KP_COMBINED "The library shaderc_combined (or a shared shaderc)" libshaderc-dev)
endif()

# Archives that refer to each other in both directions stand in a group; Apple's and Microsoft's linkers need none.
function(kp_grouped list)
  if(APPLE OR MSVC)
    set(${list} ${ARGN} PARENT_SCOPE)
  else()
    set(${list} -Wl,--start-group ${ARGN} -Wl,--end-group PARENT_SCOPE)
  endif()
endfunction()

if(KP_COMBINED)
  set(KP_CANDIDATE_1 ${KP_COMBINED})
  set(KP_CANDIDATE_2 ${KP_COMBINED} ${KP_SPIRV_TOOLS})
  set(KP_CANDIDATE_3 ${KP_COMBINED} ${KP_GLSLANG} ${KP_SPIRV_TOOLS})
endif()
if(KP_SHADERC)
  set(KP_CANDIDATE_4 ${KP_SHADERC} ${KP_SPIRV_TOOLS})
endif()
if(KP_LIB_MachineIndependent)
  # A glslang in parts beside it means that this libshaderc_combined is the one that lacks them.
  set(KP_CANDIDATE_ORDER 3 2 1 4)
else()
  set(KP_CANDIDATE_ORDER 1 2 3 4)
endif()

set(KP_TOOLCHAIN_PROBE [[
#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>
#include <spirv-tools/optimizer.hpp>
#include <spirv_cross/spirv_hlsl.hpp>
int main(int count, char** words) {
    shaderc_compile_options_t options = shaderc_compile_options_initialize();
    shaderc_compiler_t compiler = shaderc_compiler_initialize();
    shaderc_compile_into_spv(compiler, words[0], 1, shaderc_compute_shader, "", "main", options);
    spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_2);
    optimizer.RegisterPerformancePasses();
    spv_const_binary_t binary = {nullptr, 0};
    spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_2);
    spvValidate(context, &binary, nullptr);
    spvTextToBinary(context, words[0], 1, nullptr, nullptr);
    return spirv_cross::CompilerHLSL(std::vector<uint32_t>(count)).compile().empty();
}
]])

set(CMAKE_REQUIRED_INCLUDES
  ${SHADERC_INCLUDE_DIR} ${SPIRV_TOOLS_INCLUDE_DIR} ${SPIRV_HEADERS_INCLUDE_DIR} ${SPIRV_CROSS_INCLUDE_DIR})
find_package(Threads REQUIRED)
set(KP_TOOLCHAIN_LIBRARIES)
foreach(candidate ${KP_CANDIDATE_ORDER})
  if(KP_CANDIDATE_${candidate} AND NOT KP_TOOLCHAIN_LIBRARIES)
    kp_grouped(CMAKE_REQUIRED_LIBRARIES ${KP_CANDIDATE_${candidate}} ${KP_SPIRV_CROSS})
    list(APPEND CMAKE_REQUIRED_LIBRARIES Threads::Threads)
    check_cxx_source_compiles("${KP_TOOLCHAIN_PROBE}" KP_SHADER_TOOLCHAIN_${candidate}_LINKS)
    if(KP_SHADER_TOOLCHAIN_${candidate}_LINKS)
      kp_grouped(KP_TOOLCHAIN_LIBRARIES ${KP_CANDIDATE_${candidate}} ${KP_SPIRV_CROSS})
    endif()
  endif()
endforeach()
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)
kp_require(KP_TOOLCHAIN_LIBRARIES
  "A set of shaderc, glslang and SPIRV-Tools that links (why is in CMakeFiles/CMakeError.log or CMakeConfigureLog.yaml)"
  "libshaderc-dev glslang-dev spirv-tools")

add_library(kp_shader_toolchain INTERFACE)
target_include_directories(kp_shader_toolchain SYSTEM INTERFACE
  ${SHADERC_INCLUDE_DIR} ${SPIRV_TOOLS_INCLUDE_DIR} ${SPIRV_HEADERS_INCLUDE_DIR} ${SPIRV_CROSS_INCLUDE_DIR})
target_link_libraries(kp_shader_toolchain INTERFACE ${KP_TOOLCHAIN_LIBRARIES} Threads::Threads)
