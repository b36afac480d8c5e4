# SPDX-License-Identifier: Apache-2.0
# The one way libraries are made here: settings for all our code, and a helper a kind of target.

find_package(Threads REQUIRED)

add_library(pfrt_settings INTERFACE)
target_compile_features(pfrt_settings INTERFACE cxx_std_20 c_std_11)
target_include_directories(pfrt_settings INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(pfrt_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wconversion> -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in plain std::string concatenation (its bug 105651).
  target_compile_options(pfrt_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_compile_definitions(pfrt_settings INTERFACE PFRT_VERSION_TEXT="${PROJECT_VERSION}")
if(PYFLAME_RT_WERROR)
  target_compile_options(pfrt_settings INTERFACE -Werror)
endif()
if(PYFLAME_RT_SANITIZE)
  # Line tables are what a report needs; at -O2 GCC takes two to three times as long over instrumented code.
  target_compile_options(pfrt_settings INTERFACE -O1 -g1)
endif()
if(PYFLAME_RT_SANITIZE STREQUAL "address")
  target_compile_options(pfrt_settings INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer)
  target_link_options(pfrt_settings INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(pfrt_settings INTERFACE PFRT_SANITIZE_ADDRESS)
elseif(PYFLAME_RT_SANITIZE STREQUAL "thread")
  target_compile_options(pfrt_settings INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(pfrt_settings INTERFACE -fsanitize=thread)
  target_compile_definitions(pfrt_settings INTERFACE PFRT_SANITIZE_THREAD)
elseif(PYFLAME_RT_SANITIZE)
  message(FATAL_ERROR "PYFLAME_RT_SANITIZE is '${PYFLAME_RT_SANITIZE}': address or thread")
endif()

# pfrt_add_library(core/ir SOURCES a.cc DEPS core/base): the static library of a folder, pfrt::core::ir.
function(pfrt_add_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK" ${ARGN})
  string(REPLACE "/" "_" name "pfrt_${folder}")
  string(REPLACE "/" "::" alias "pfrt::${folder}")
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(${alias} ALIAS ${name})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                        C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
  target_link_libraries(${name} PUBLIC pfrt_settings)
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "::" dep "pfrt::${dep}")
    target_link_libraries(${name} PUBLIC ${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()

# A shared object with exactly the symbols of |map|, and nothing of the static libraries in it.
function(pfrt_shared_settings target map)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF LINK_DEPENDS ${map})
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
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/pyflame_rt/plugins)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/pyflame_rt/plugins COMPONENT runtime)
endfunction()
