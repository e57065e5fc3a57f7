#include "rlx/base/error.h"

namespace rlx {

void Error::compose() {
  full_ = message_;
  if (node_.empty() && origin_.empty()) return;
  full_ += " (";
  if (!node_.empty()) full_ += "node " + node_;
  if (!origin_.empty()) {
    if (!node_.empty()) full_ += ", ";
    full_ += "from " + origin_;
  }
  full_ += ")";
}

namespace detail {

void check_failed(const char* condition, const std::string& message, std::source_location where) {
  throw Error(ErrorKind::internal,
              cat(where.file_name(), ":", where.line(), ": internal error, please report: ", condition,
                  message.empty() ? "" : ": ", message));
}

}  // namespace detail
}  // namespace rlx
