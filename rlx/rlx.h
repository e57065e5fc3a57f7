// Everything a user of the library includes.
#pragma once

#include "rlx/base/version.h"
#include "rlx/io/hf_config.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/lang/control.h"
#include "rlx/lang/derivatives.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/graph.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/inspect.h"
#include "rlx/lang/module.h"
#include "rlx/lang/operators.h"
#include "rlx/lang/program.h"
#include "rlx/lang/trace.h"
#include "rlx/ops/control/custom_op.h"
#include "rlx/runtime/compiled_graph.h"
