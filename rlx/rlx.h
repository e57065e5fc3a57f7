// What most programs include: graphs, tracing, derivatives, files, compiled programs. Training (rlx/train/trainer.h), models
// (rlx/models/model.h), text from models (rlx/llm/language_model.h) and ONNX (rlx/onnx/import.h) have headers of their own.
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
#include "rlx/runtime/named_weights.h"
#include "rlx/runtime/session.h"
