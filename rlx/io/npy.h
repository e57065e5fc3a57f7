// NumPy's .npy (one array) and .npz (a ZIP of them).
//
//   "\x93NUMPY" | major, minor | header length u16 (u32 from version 2) |
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } and spaces | data
//
// Types NumPy has no name for are written as a structure with one named field, which NumPy reads:
// bf16 as [('bf16', '<u2')], f8e4m3 as [('f8e4m3', '|u1')], f8e5m2 likewise. '<V2', which arrays of
// ml_dtypes' bfloat16 get, is read as bf16. Big-endian data and Fortran order are converted when read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/tensor_view.h"

namespace rlx::io {

/// The tensor is called like the file without its ending.
TensorView read_npy(const std::string& path);
/// As read_npy, from bytes kept alive by `owner`.
TensorView parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     std::string_view name);
/// One array. Types NumPy does not have are user errors.
void write_npy(const std::string& path, const TensorView&);

/// In file order, names without ".npy". Stored arrays are views of the mapping, deflated ones own their
/// bytes, which may not be more than inflation_budget (rlx/io/zip.h) in all.
std::vector<TensorView> read_npz(const std::string& path);
/// As read_npz, from bytes kept alive by `owner`.
std::vector<TensorView> parse_npz(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                  std::string_view name);
/// The same without inflating more than headers: deflated arrays stay packed, and the budget is for each.
std::vector<TensorView> list_npz(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                 std::string_view name);
/// Whether arrays of this type can be written.
bool npy_can_hold(const StorageType&);
/// Arrays under their names; `deflate` packs them.
void write_npz(const std::string& path, std::span<const TensorView> tensors, bool deflate = false,
               const LoadTensor& load = {});

}  // namespace rlx::io
