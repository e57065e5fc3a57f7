// Optimisers by name. Each source of optimisers adds its own.
#pragma once

#include "rlx/train/optimizer.h"

namespace rlx::train {

/// How an optimiser is made of its settings, by its name.
using Catalogue = std::map<std::string, std::function<Optimizer(const Settings&)>, std::less<>>;

// Those of one source each.
void add_first_order(Catalogue&);
void add_adam(Catalogue&);
void add_muon(Catalogue&);
void add_lbfgs(Catalogue&);

/// The nodes of AdamW for one tensor, with states "m" and "v".
void adamw_step(Update&, Trained&, const AdamW&);

}  // namespace rlx::train
