# kp_core: the core's static libraries, one for each folder, with all that they are linked with.

include(cmake/ShaderToolchain.cmake)  # kp_shader_toolchain: shaderc, glslang, SPIRV-Tools, SPIRV-Cross

# volk opens the Vulkan loader at run time; it comes as one C file beside its header.
find_path(VULKAN_INCLUDE_DIR vulkan/vulkan_core.h)
find_path(VOLK_DIR NAMES volk.c PATH_SUFFIXES include src/volk volk)
kp_require(VULKAN_INCLUDE_DIR "Vulkan's headers" libvulkan-dev)
kp_require(VOLK_DIR "volk.c" libvulkan-volk-dev)

add_library(kp_settings INTERFACE)
target_compile_definitions(kp_settings INTERFACE VK_NO_PROTOTYPES)
# Locks that are taken out of order end the program (native/core/base/ranked.hpp).
target_compile_definitions(kp_settings INTERFACE
  $<$<OR:$<CONFIG:Debug>,$<BOOL:${KOMPUTE_PY_ASAN}>,$<BOOL:${KOMPUTE_PY_TSAN}>>:KP_CHECK_LOCKS>)
target_include_directories(kp_settings INTERFACE native/core ${VULKAN_INCLUDE_DIR})
target_compile_options(kp_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-missing-field-initializers>)
if(KOMPUTE_PY_ASAN)
  # Undefined behaviour ends the program, as a bad address does: a report that nobody reads finds nothing.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
endif()
if(KOMPUTE_PY_TSAN)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=thread)
endif()

set(below kp_settings kp_shader_toolchain Threads::Threads ${CMAKE_DL_LIBS})
foreach(folder IN LISTS KP_CORE_FOLDERS)
  file(GLOB sources CONFIGURE_DEPENDS native/core/${folder}/*.cpp)
  add_library(kp_${folder} STATIC ${sources})
  target_link_libraries(kp_${folder} PUBLIC ${below})
  set(below kp_${folder})
endforeach()
# The units of these rooms are compiled as one: most of the time of a small unit goes into headers, and into the functions
# of the standard library's templates. The units of the other rooms have names in common.
set_target_properties(kp_base kp_adapter kp_pipeline kp_sync kp_memory kp_device kp_resource kp_record kp_run PROPERTIES
  UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
target_sources(kp_base PRIVATE ${VOLK_DIR}/volk.c)
target_include_directories(kp_base PUBLIC ${VOLK_DIR})
add_library(kp_core INTERFACE)
target_link_libraries(kp_core INTERFACE kp_run)

# What the cache of compiled shaders calls this compiler: the libraries' content, and that of the code around them. A
# change of either makes CMake run again, so that nothing stale is found under the new compiler's name.
file(GLOB KP_COMPILER_FILES CONFIGURE_DEPENDS native/core/compiler/*.cpp native/core/compiler/*.hpp)
if(NOT KP_COMPILER_FILES)
  message(FATAL_ERROR "The compiler's files are not where they were: its name would stay when they change.")
endif()
foreach(library IN LISTS KP_TOOLCHAIN_LIBRARIES)
  if(EXISTS "${library}")
    list(APPEND KP_COMPILER_FILES ${library})
  endif()
endforeach()
set(KP_COMPILER_ID "")
foreach(part IN LISTS KP_COMPILER_FILES)
  file(SHA256 ${part} hash)
  string(APPEND KP_COMPILER_ID ${hash})
endforeach()
string(SHA256 KP_COMPILER_ID "${KP_COMPILER_ID}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KP_COMPILER_FILES})
set_source_files_properties(native/core/compiler/compile.cpp PROPERTIES
  COMPILE_DEFINITIONS KP_COMPILER_ID="${KP_COMPILER_ID}")

# A build of the module for another Python may take the core from here (KOMPUTE_PY_CORE).
set(exported kp_settings kp_shader_toolchain kp_core)
foreach(folder IN LISTS KP_CORE_FOLDERS)
  list(APPEND exported kp_${folder})
endforeach()
export(TARGETS ${exported} FILE ${CMAKE_BINARY_DIR}/kp_core.cmake)
