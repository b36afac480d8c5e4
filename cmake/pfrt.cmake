# SPDX-License-Identifier: Apache-2.0
# Functions that make all targets here: settings for all our code, and a function for each kind of target.

find_package(Threads REQUIRED)

add_library(pfrt_settings INTERFACE)
target_compile_features(pfrt_settings INTERFACE cxx_std_20 c_std_11)
target_include_directories(pfrt_settings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(pfrt_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wconversion> -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlapping and endless copies in plain std::string concatenation (its bug 105651).
  foreach(warning restrict array-bounds stringop-overflow stringop-overread aggressive-loop-optimizations)
    target_compile_options(pfrt_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-${warning}>)
  endforeach()
endif()
target_compile_definitions(pfrt_settings INTERFACE PFRT_VERSION_TEXT="${PROJECT_VERSION}")
if(PYFLAME_RT_WERROR)
  target_compile_options(pfrt_settings INTERFACE -Werror)
endif()
if(PYFLAME_RT_SANITIZE)
  # A report needs line tables only. GCC takes two to three times as long over instrumented code at -O2 as at -O1, and
  # at -O1 as at -O0, which is enough for code outside the libraries.
  target_compile_options(pfrt_settings INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:PFRT_LIBRARY>>,-O1,-O0>
                         $<IF:$<BOOL:$<TARGET_PROPERTY:PFRT_TEST>>,-g0,-g1>)
endif()
if(PYFLAME_RT_SANITIZE STREQUAL "address")
  # Checks of pointers would be a third of the code; AddressSanitizer sees accesses through a wrong pointer anyway.
  set(undefined -fsanitize=undefined -fno-sanitize-recover=undefined -fno-sanitize=null,object-size,pointer-overflow,vptr)
  target_compile_options(pfrt_settings INTERFACE -fsanitize=address -fno-omit-frame-pointer
                         "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:PFRT_TEST>>>:${undefined}>")
  target_link_options(pfrt_settings INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(pfrt_settings INTERFACE PFRT_SANITIZE_ADDRESS)
elseif(PYFLAME_RT_SANITIZE STREQUAL "thread")
  target_compile_options(pfrt_settings INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(pfrt_settings INTERFACE -fsanitize=thread)
  target_compile_definitions(pfrt_settings INTERFACE PFRT_SANITIZE_THREAD)
elseif(PYFLAME_RT_SANITIZE)
  message(FATAL_ERROR "PYFLAME_RT_SANITIZE is '${PYFLAME_RT_SANITIZE}': address or thread")
endif()

# Headers of the standard library are more than half of a compiler's time: they are parsed once for all libraries.
# CMAKE_DISABLE_PRECOMPILE_HEADERS (the dev preset) shows what a source forgot to include.
function(pfrt_library_settings target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                        C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF
                        PFRT_LIBRARY ON)
  if(NOT target STREQUAL "pfrt_precompiled")
    target_precompile_headers(${target} REUSE_FROM pfrt_precompiled)
  endif()
endfunction()

set(PFRT_PRECOMPILED <cmake/precompiled.h>)  # a path that is the same in every checkout
add_library(pfrt_precompiled OBJECT ${CMAKE_CURRENT_LIST_DIR}/precompiled.cc)
target_link_libraries(pfrt_precompiled PRIVATE pfrt_settings)
target_precompile_headers(pfrt_precompiled PRIVATE ${PFRT_PRECOMPILED})
pfrt_library_settings(pfrt_precompiled)

# Sources of |target| are compiled |count| at a time, which costs less where each of them would generate the same inline
# functions. As with precompiled headers, the dev preset shows what a source forgot to include. Kernels are compiled each
# alone.
function(pfrt_join_sources target count)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

# Settings for sources of the calling folder that no run executes: they are compiled for size, not for speed.
function(pfrt_small_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# A library that no run spends time in: likewise for size.
function(pfrt_small_library target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

# pfrt_add_library(core/ir SOURCES a.cc DEPS core/base): the static library of a folder, pfrt::core::ir.
function(pfrt_add_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK" ${ARGN})
  string(REPLACE "/" "_" name "pfrt_${folder}")
  string(REPLACE "/" "::" alias "pfrt::${folder}")
  list(TRANSFORM ARG_DEPS REPLACE "/" "::")
  list(TRANSFORM ARG_DEPS PREPEND "pfrt::")
  if(PYFLAME_RT_KERNELS_FROM AND folder MATCHES "^providers/(cpu|wse)")
    # Archives of another build have what did not change. Objects of sources that did stand before them, so that the
    # archives' own are not looked for.
    set(built ${PYFLAME_RT_KERNELS_FROM}/${folder}/lib${name}.a)
    set(anew)
    foreach(source ${ARG_SOURCES})
      if("${folder}/${source}" IN_LIST PYFLAME_RT_KERNELS_ANEW)
        list(APPEND anew ${source})
      endif()
    endforeach()
    add_library(${name} INTERFACE)
    add_library(${alias} ALIAS ${name})
    if(anew)
      add_library(${name}_anew OBJECT ${anew})
      pfrt_library_settings(${name}_anew)
      target_link_libraries(${name}_anew PRIVATE pfrt_settings ${ARG_DEPS} ${ARG_LINK})
      target_link_libraries(${name} INTERFACE $<TARGET_OBJECTS:${name}_anew>)
    endif()
    # Before what it uses, whose inline functions are then those with a sanitizer wherever both have them.
    target_link_libraries(${name} INTERFACE ${built} pfrt_settings ${ARG_DEPS} ${ARG_LINK})
    return()
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(${alias} ALIAS ${name})
  pfrt_library_settings(${name})
  target_link_libraries(${name} PUBLIC pfrt_settings ${ARG_DEPS} PRIVATE ${ARG_LINK})
endfunction()

# A shared object with exactly the symbols of |map|, and nothing of the static libraries in it.
function(pfrt_shared_settings target map)
  pfrt_library_settings(${target})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  if(NOT PYFLAME_RT_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# pfrt_add_plugin(provider cpu SOURCES plugin.cc DEPS providers/cpu): libpyflamert_provider_cpu.so in the plug-in folder.
function(pfrt_add_plugin kind short)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK" ${ARGN})
  set(target pyflamert_${kind}_${short})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE pfrt_settings ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "::" dep "pfrt::${dep}")
    target_link_libraries(${target} PRIVATE ${dep})
  endforeach()
  pfrt_shared_settings(${target} ${PROJECT_SOURCE_DIR}/plugins/plugin.map)
  # A wheel has the libraries that plug-ins need in this folder; elsewhere it is absent and the system's are taken.
  # The old kind of path (RPATH) also holds for the libraries that those need.
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/pyflame_rt/plugins
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../bundled")
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/pyflame_rt/plugins COMPONENT runtime)
endfunction()
