# SPDX-License-Identifier: Apache-2.0
# Parts that `cmake --install` adds beside the targets: the CMake package and the pkg-config file.
include(CMakePackageConfigHelpers)

install(EXPORT pyflame_rt NAMESPACE pyflame_rt:: FILE pyflame_rt-targets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pyflame_rt COMPONENT development)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/pyflame_rt-config.cmake.in
  ${PROJECT_BINARY_DIR}/pyflame_rt-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pyflame_rt)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/pyflame_rt-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pyflame_rt-config.cmake
              ${PROJECT_BINARY_DIR}/pyflame_rt-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pyflame_rt COMPONENT development)

# The prefix is given relative to the .pc file, so that the installed tree can be moved.
file(RELATIVE_PATH PFRT_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(${CMAKE_CURRENT_LIST_DIR}/pyflame_rt.pc.in ${PROJECT_BINARY_DIR}/pyflame_rt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pyflame_rt.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
