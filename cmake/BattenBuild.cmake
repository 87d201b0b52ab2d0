# Settings of every build: language level, warnings as errors, ccache, refused platforms. Used by the whole tree and by
# runtime/ alone.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "Batten runs on Linux; this system is ${CMAKE_SYSTEM_NAME}")
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "Batten needs a 64-bit target")
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|aarch64|arm64)$")
  message(FATAL_ERROR "Batten runs on x86-64 and aarch64; this processor is ${CMAKE_SYSTEM_PROCESSOR}")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(BATTEN_CCACHE ccache)
if(BATTEN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${BATTEN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BATTEN_CCACHE})
endif()

# Warnings for our own targets only: third-party headers come in as SYSTEM.
add_library(batten_warnings INTERFACE)
target_compile_options(batten_warnings INTERFACE -Wall -Wextra -Werror -Wno-unused-parameter -ffp-contract=off)
