# Finds LLVM/MLIR 22 and makes batten_mlir, which everything that touches IR links.
# A major-only request to find_package is refused by MLIR's config, so the version is checked here.
find_package(MLIR REQUIRED CONFIG)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Batten needs LLVM/MLIR 22, found ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}; run tools/setup.sh or set MLIR_DIR")
endif()
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(batten_mlir INTERFACE)
target_include_directories(batten_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(batten_mlir INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(batten_mlir INTERFACE ${LLVM_DEFINITIONS})
target_compile_options(batten_mlir INTERFACE -fno-exceptions)
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(batten_mlir INTERFACE -fno-rtti)
endif()
# The shared libraries only: a second, static copy of LLVM would register its options twice.
target_link_libraries(batten_mlir INTERFACE MLIR LLVM batten_warnings)
