# Finds libpthreadpool, which ships no CMake files of its own:
# PThreadPool::PThreadPool.
find_path(PTHREADPOOL_INCLUDE_DIR pthreadpool.h)
find_library(PTHREADPOOL_LIBRARY pthreadpool)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PThreadPool REQUIRED_VARS PTHREADPOOL_LIBRARY PTHREADPOOL_INCLUDE_DIR)
mark_as_advanced(PTHREADPOOL_INCLUDE_DIR PTHREADPOOL_LIBRARY)
if(PThreadPool_FOUND AND NOT TARGET PThreadPool::PThreadPool)
  add_library(PThreadPool::PThreadPool UNKNOWN IMPORTED GLOBAL)
  set_target_properties(PThreadPool::PThreadPool PROPERTIES
    IMPORTED_LOCATION "${PTHREADPOOL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${PTHREADPOOL_INCLUDE_DIR}")
endif()
