// The version of the library. This is the one place of it; CMake reads it here. A minor version may change the
// interface, a patch version does not.
#pragma once

/// The version of the headers that a program includes.
#define RLX_VERSION "0.1.0"
/// Its parts, for #if.
#define RLX_VERSION_MAJOR 0
#define RLX_VERSION_MINOR 1
#define RLX_VERSION_PATCH 0
