# `cmake --install`: libraries, headers, tools and LinAttnConfig.cmake. The
# Python package is installed by its own build, from pyproject.toml.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/LinAttn")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" "${PROJECT_BINARY_DIR}/include/"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def" PATTERN "*.inc"
  PATTERN CMakeFiles EXCLUDE)
install(TARGETS linattn-compile linattn-lsp-server linattn-opt linattn-run linattn-translate
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS LinAttnPlugin LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS linattn_runner EXPORT LinAttnTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(EXPORT LinAttnTargets NAMESPACE LinAttn:: DESTINATION "${package_dir}")
get_property(LINATTN_EXPORTED GLOBAL PROPERTY LINATTN_EXPORTED)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/LinAttnConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/LinAttnConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/LinAttnConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/LinAttnConfig.cmake" "${PROJECT_BINARY_DIR}/LinAttnConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/modules/FindPThreadPool.cmake" DESTINATION "${package_dir}")
