// A group of products and the region behind them can be one kernel, cut in several ways, or the products of the library and a pass over their results: what such steps share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rlx/backend/cuda/nodes/product_reading.h"

namespace rlx::cuda {

/// The products and the region as steps of their own, with memory for what lies between them.
class PlainWay {
 public:
  PlainWay(const Device&, const ProductReading&);

  size_t workspace() const { return workspace_; }
  /// What the first product says of itself.
  const std::string& note() const { return products_.front()->note; }
  void run(const Launch&, std::byte* workspace) const;

 private:
  std::vector<std::unique_ptr<Step>> products_;
  std::unique_ptr<Step> region_;
  std::vector<std::vector<int>> operands_;    // of the group, of each product
  std::vector<int> inputs_;                   // of the region: an operand or a product (-1, -2, ..)
  std::vector<int> results_;                  // of the group: those of the region
  size_t product_bytes_ = 0, workspace_ = 0;  // of one product, of all
};

/// Runs way 0, 1, .. of the own kernel.
using OwnWays = std::function<void(size_t way, Stream_*, const Launch&)>;

/// 0: the plain way; 1, 2, ..: an own one. Measured once for each key, over memory that is made for it; `make` is called when there is something to measure. 0 where memory is too little to try.
int fastest_way(const Device&, const Request&, const PlainWay&, const std::string& key, size_t own_ways,
                const std::function<OwnWays()>& make);

/// From the first byte of an operand to its last.
int64_t bytes_of(const Arg&);

/// The address of an operand (0, 1, ..) or of a result (-1, -2, ..).
inline std::byte* member_address(const Launch& l, int member) {
  return member >= 0 ? l.in[member] : l.out[-1 - member];
}

}  // namespace rlx::cuda
